"""Being told to stop. A worker has a second at most, and uses it to make its finished work durable."""

import os
import select
import signal
import time
from collections.abc import Callable
from types import FrameType
from typing import Final, NoReturn

from fish_contracts.exit_codes import ExitCode

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_ITEM_DEADLINE_S: Final = 0.4  # an item that is not done by then is abandoned; the next worker does it again


def exit_at_once_when_told() -> None:
    """Leave as preempted on a stop signal: right as long as there is nothing to make durable."""

    def leave(_signal: int, _frame: FrameType | None) -> NoReturn:
        os._exit(ExitCode.PREEMPTED)

    for number in _SIGNALS:
        signal.signal(number, leave)


class StopRequest:
    """Becomes true on a stop signal, and ends every wait.

    A pipe and not a `threading.Event`: setting an event from a signal handler takes a lock that the interrupted code may hold.
    """

    def __init__(self) -> None:
        self.requested_at_s = float("inf")
        self._reader, self._writer = os.pipe()

    @property
    def is_requested(self) -> bool:
        """Tell whether somebody asked to stop."""
        return self.requested_at_s < float("inf")

    def listen(self, leave: Callable[[], NoReturn]) -> None:
        """Take stop signals from now on. `leave` is called when the loop does not come round in time by itself."""

        def request(_signal: int, _frame: FrameType | None) -> None:
            self.request()
            signal.setitimer(signal.ITIMER_REAL, _ITEM_DEADLINE_S)

        def leave_now(_signal: int, _frame: FrameType | None) -> None:
            leave()

        signal.signal(signal.SIGALRM, leave_now)
        for number in _SIGNALS:
            signal.signal(number, request)

    def request(self) -> None:
        """Ask to stop."""
        self.requested_at_s = min(self.requested_at_s, time.monotonic())
        os.write(self._writer, b"!")

    def wait(self, timeout_s: float) -> None:
        """Wait that long, or until asked to stop."""
        select.select([self._reader], [], [], max(0.0, timeout_s))


def disarm() -> None:
    """Let the deadline pass: leaving has begun, and must not begin again inside itself."""
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    for number in (*_SIGNALS, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
