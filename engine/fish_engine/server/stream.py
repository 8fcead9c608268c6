"""What a client is going to hear: one utterance on its way from the engine's thread, or a moment of silence."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from fish_engine.engine import Audio, Event, Failed, Speech
from fish_engine.errors import EngineError
from fish_engine.service import Service

_SILENCE_S: Final = 0.2


class Silence:
    """What a text without anything to say sounds like: short, and no error, because chat clients send such texts all the time."""

    def __init__(self, *, sample_rate_hz: int) -> None:
        self._samples = np.zeros(int(_SILENCE_S * sample_rate_hz), dtype=np.float32)

    async def __aenter__(self) -> Self:
        """Nothing to wait for."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing to give up."""

    async def samples(self) -> AsyncIterator[NDArray[np.float32]]:
        """Yield all of it."""
        yield self._samples


class SpeechStream:
    """The samples of one request, as they are made. Leaving the `async with` early gives the request up."""

    def __init__(self, service: Service, speech: Speech) -> None:
        """Queue the request, or raise what `Service.submit` raises."""
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._service = service
        self._is_over = False
        self._request_id = service.submit(speech, self._on_event)

    def _on_event(self, event: Event) -> None:
        """Hand over from the engine's thread."""
        self._loop.call_soon_threadsafe(self._events.put_nowait, event)

    async def __aenter__(self) -> Self:
        """Nothing to wait for: the request is queued already."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Give up what has not ended."""
        if not self._is_over:
            self._service.cancel(self._request_id)

    async def samples(self) -> AsyncIterator[NDArray[np.float32]]:
        """Yield samples in -1 .. 1 until the end.

        Raises:
            EngineError: the engine gave the request up.
        """
        while isinstance(event := await self._events.get(), Audio):
            yield event.samples.numpy()
        self._is_over = True
        if isinstance(event, Failed):
            raise EngineError(event.message)
