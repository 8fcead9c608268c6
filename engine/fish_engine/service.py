"""The engine on a thread of its own, behind a bounded queue: what a server talks to.

Requests go in and come back from any thread. The bound is checked at the door, so that nobody waits for a place that will
not come in time.
"""

import contextlib
import logging
import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Final

from fish_engine.engine import Audio, Engine, Event, Failed, Speech
from fish_engine.errors import BadRequest, Draining, Overloaded
from fish_engine.telemetry import EngineMetrics

_log = logging.getLogger(__name__)
_FAILURE: Final = "the engine failed and will start anew"


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Streams that are being made, and streams that wait."""

    active: int
    queued: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Add:
    request_id: int
    speech: Speech
    on_event: Callable[[Event], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Remove:
    request_id: int


@dataclass(frozen=True, slots=True)
class _Stop:
    pass


class Service:
    """Runs one engine."""

    def __init__(self, engine: Engine, metrics: EngineMetrics, *, max_streams: int, max_queued: int) -> None:
        self.max_streams = max_streams
        self.is_draining = False
        self.has_failed = False
        self._engine = engine
        self._metrics = metrics
        self._max_in_flight = max_streams + max_queued
        self._inbox: SimpleQueue[_Add | _Remove | _Stop] = SimpleQueue()
        self._lock = threading.Lock()
        self._in_flight: set[int] = set()
        self._next_id = 0
        self._active = 0
        self._held = 0
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)

    def start(self) -> None:
        """Start the loop."""
        self._thread.start()

    @property
    def is_started(self) -> bool:
        """The loop runs, or has run."""
        return self._thread.ident is not None

    def stop(self) -> None:
        """End the loop after the step that it is in, and wait for it."""
        self._inbox.put(_Stop())
        self._thread.join()

    def drain(self) -> None:
        """Take no new request from now on; those in flight go on to their end."""
        with self._lock:
            self.is_draining = True

    @property
    def is_drained(self) -> bool:
        """No request is in flight and none will come."""
        return self.is_draining and not self._in_flight and not self._held

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep the service from being drained while a speech is between two of its parts."""
        with self._lock:
            self._held += 1
        try:
            yield
        finally:
            with self._lock:
                self._held -= 1

    @property
    def load(self) -> Load:
        """How busy the engine is now."""
        with self._lock:
            active = min(self._active, len(self._in_flight))
            return Load(active=active, queued=len(self._in_flight) - active)

    def submit(self, speech: Speech, on_event: Callable[[Event], None], *, is_continuation: bool = False) -> int:
        """Queue a request and return its id. `on_event` is called on the engine's thread and must not block.

        The next part of a speech that was let in is never turned away.

        Raises:
            BadRequest: the cache can never hold it.
            Overloaded: the queue is full.
            Draining: the engine is about to stop, or has failed.
        """
        if not self._engine.fits(speech):
            raise BadRequest("text and references are longer than this server's memory holds; send less at a time")
        with self._lock:
            self._check_door(is_continuation=is_continuation)
            request_id = self._next_id
            self._next_id += 1
            self._in_flight.add(request_id)
            # Inside the lock, so that requests arrive in the order of their ids.
            self._inbox.put(_Add(request_id=request_id, speech=speech, on_event=on_event))
        return request_id

    def cancel(self, request_id: int) -> None:
        """Give up a request; its place is free before the next step. Harmless when it has ended."""
        self._inbox.put(_Remove(request_id=request_id))

    def check_door(self) -> None:
        """Raise what `submit` would raise now, whatever the request."""
        with self._lock:
            self._check_door(is_continuation=False)

    def _check_door(self, *, is_continuation: bool) -> None:
        if self.has_failed or (self.is_draining and not is_continuation):
            raise Draining("the server is about to stop; ask another one")
        if len(self._in_flight) >= self._max_in_flight and not is_continuation:
            raise self._overloaded()

    def _overloaded(self) -> Overloaded:
        waiting = len(self._in_flight) - self._active
        # A stream is a few seconds of work: one round of the batch for each batchful that waits.
        retry_after_s = max(1, math.ceil(waiting / self.max_streams))
        return Overloaded(
            f"{self._active} streams are running and {waiting} wait, which is all that this server takes",
            retry_after_s=retry_after_s,
        )

    def _run(self) -> None:
        try:
            while self._take_inbox():
                self._engine.step()
                self._publish()
        except Exception:
            # A step that raises leaves the pages in an unknown state: give up, and let whoever supervises start anew.
            _log.exception("engine failed")
            with self._lock:
                self.is_draining = self.has_failed = True
            self._engine.fail_all(_FAILURE)
            self._fail_inbox()

    def _take_inbox(self) -> bool:
        """Do what was asked since the last step, waiting where there is nothing else to do; False to stop."""
        try:
            command = self._inbox.get(block=self._engine.is_idle)
            while True:
                match command:
                    case _Add():
                        self._engine.add(command.request_id, command.speech, self._until_over(command))
                    case _Remove():
                        self._engine.remove(command.request_id)
                        self._over(command.request_id)
                    case _Stop():
                        return False
                command = self._inbox.get_nowait()
        except Empty:
            return True

    def _fail_inbox(self) -> None:
        while not self._inbox.empty():
            command = self._inbox.get_nowait()
            if isinstance(command, _Add):
                self._until_over(command)(Failed(message=_FAILURE))

    def _until_over(self, command: _Add) -> Callable[[Event], None]:
        def on_event(event: Event) -> None:
            if not isinstance(event, Audio):
                self._over(command.request_id)
            command.on_event(event)

        return on_event

    def _over(self, request_id: int) -> None:
        with self._lock:
            self._in_flight.discard(request_id)

    def _publish(self) -> None:
        self._active = self._engine.running_count
        load = self.load
        self._metrics.active_streams.set(load.active)
        self._metrics.queued_streams.set(load.queued)
