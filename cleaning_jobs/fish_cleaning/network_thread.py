"""An event loop in a thread of its own, for requests to object storage.

Whoever waits for an answer waits in Python, so a stop signal is heard at once, however long the network is silent.
"""

import asyncio
import atexit
import functools
import threading
from collections.abc import Awaitable
from concurrent.futures import CancelledError
from typing import Final, TypeVar

from fish_cleaning.errors import StoreFailed

Answer = TypeVar("Answer")

_END_S: Final = 2.0


def wait_for(answer: Awaitable[Answer]) -> Answer:
    """Run a request in the network thread and return its answer."""

    async def run() -> Answer:
        return await answer

    try:
        return asyncio.run_coroutine_threadsafe(run(), _event_loop()).result()
    except CancelledError as error:
        raise StoreFailed("a request was dropped, because the process ends") from error


@functools.cache
def _event_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="object-storage", daemon=True).start()
    # A request that is answered while the interpreter goes down would call into what is gone already.
    atexit.register(lambda: asyncio.run_coroutine_threadsafe(_cancel_all(), loop).result(_END_S))
    return loop


async def _cancel_all() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
