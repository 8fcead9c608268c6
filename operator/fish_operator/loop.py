"""The control loop: observe, decide, act, once a second or sooner when poked.

There is one for the whole cluster, since the GPUs are shared. It works on the state, never on an event, so a poke that is
lost costs at most a second.
"""

import asyncio
import contextlib
import time
from typing import Final, Protocol

import structlog

from fish_operator.apply import Applied
from fish_operator.decide import decide
from fish_operator.departures import Departures
from fish_operator.errors import OperatorError
from fish_operator.history import History
from fish_operator.plan import Plan
from fish_operator.telemetry import Telemetry
from fish_operator.view import ClusterView

_log = structlog.get_logger("fish_operator.loop")

SETTLE_S: Final = 0.05
"""Events come in bunches; one look after the bunch is enough."""
ALIVE_WITHIN_S: Final = 30.0


class Observes(Protocol):
    """Looks at the cluster."""

    async def view(self) -> ClusterView:
        """Return everything as it is now."""
        ...


class Applies(Protocol):
    """Acts on plans."""

    async def apply(self, plan: Plan) -> Applied:
        """Act; return how it went."""
        ...


class ControlLoop:
    """Keeps the cluster as it should be."""

    def __init__(
        self, *, observer: Observes, applier: Applies, departures: Departures, telemetry: Telemetry, tick_s: float
    ) -> None:
        self._observer = observer
        self._applier = applier
        self._departures = departures
        self._telemetry = telemetry
        self._tick_s = tick_s
        self._poked = asyncio.Event()
        self._history = History()
        self._finished_at_s: float | None = None

    def poke(self) -> None:
        """Look soon: something has changed."""
        self._poked.set()

    def is_ready(self) -> bool:
        """Tell whether a round has ever gone through."""
        return self._finished_at_s is not None

    def is_alive(self) -> bool:
        """Tell whether a round went through lately."""
        return self._finished_at_s is None or time.monotonic() - self._finished_at_s < ALIVE_WITHIN_S

    async def run(self) -> None:
        """Go round for ever."""
        while True:
            self._poked.clear()
            await self._round()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._poked.wait(), self._tick_s)
                await asyncio.sleep(SETTLE_S)

    async def _round(self) -> None:
        try:
            await self.tick()
        except OperatorError as error:
            _log.warning("round failed", error=str(error))
            self._telemetry.tick_failures.inc()
        except Exception:
            _log.exception("round failed")
            self._telemetry.tick_failures.inc()
        else:
            self._finished_at_s = time.monotonic()

    async def tick(self) -> None:
        """Observe, decide, act, once."""
        with self._telemetry.tick_s.labels("observe").time():
            view = await self._observer.view()
        with self._telemetry.tick_s.labels("decide").time():
            plan, history = decide(view, self._history)
        self._telemetry.record(plan, monotonic_s=view.monotonic_s)
        with self._telemetry.tick_s.labels("act").time():
            applied = await self._applier.apply(plan)
        history = history.refused(applied.refusals)
        self._history = history if applied.is_accounted else history.not_accounting(self._history)
        if applied.is_accounted:
            self._departures.forget(view.departed)
