"""How many engines the streams need. Pure.

Total demand (running plus waiting streams), never an average: new replicas do not dilute it. Up at once and to the full
count; down to the highest need of a whole window, one replica at a time. What cannot be read never scales down.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from fish_contracts.reports import LoadReport
from fish_operator.spec import AutoScaling, ManualScaling
from fish_operator.status import Reason
from fish_operator.view import PodStage, PodView

_SERVING_STAGES = frozenset({PodStage.READY, PodStage.UNREADY})


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Streams over the engines that should answer."""

    active: int
    queued: int
    asked: int
    """Engines that should answer: those that were able to serve."""
    unread: int
    """Engines of those that did not answer."""

    @property
    def streams(self) -> int:
        """All streams that want an engine."""
        return self.active + self.queued

    @property
    def is_complete(self) -> bool:
        """Every engine answered, and there was one to ask: only then is a low number a low demand."""
        return self.asked > 0 and self.unread == 0


def measure(engines: Sequence[PodView], loads: Mapping[str, LoadReport]) -> Demand:
    """Add up the streams; those of draining engines finish where they are and need no replica."""
    asked = [engine for engine in engines if engine.stage in _SERVING_STAGES and not engine.is_draining]
    reports = [loads[engine.uid] for engine in asked if engine.uid in loads]
    return Demand(
        active=sum(report.active_streams for report in reports),
        queued=sum(report.queued_streams for report in reports),
        asked=len(asked),
        unread=len(asked) - len(reports),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandWindow:
    """Needed replicas over the last window: only samples that no later one exceeds, oldest (and highest) first."""

    samples: tuple[tuple[float, int], ...] = ()
    complete_since_s: float | None = None
    """Since when every reading was complete; None before the first, and after an incomplete one."""

    def with_sample(self, *, at_s: float, replicas: int, window_s: float) -> "DemandWindow":
        """Return the window after one complete reading."""
        kept = tuple(sample for sample in self.samples if sample[0] >= at_s - window_s and sample[1] > replicas)
        since_s = at_s if self.complete_since_s is None else self.complete_since_s
        return DemandWindow(samples=(*kept, (at_s, replicas)), complete_since_s=since_s)

    def interrupted(self) -> "DemandWindow":
        """Return the window after an incomplete reading: another whole window must be seen before scaling down."""
        return replace(self, complete_since_s=None)

    def peak(self) -> int:
        """Return the highest need in the window, 0 when there is none."""
        return self.samples[0][1] if self.samples else 0

    def is_full(self, *, at_s: float, window_s: float) -> bool:
        """Tell whether readings were complete for a whole window."""
        return self.complete_since_s is not None and at_s - self.complete_since_s >= window_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """How many replicas there should be now, and why."""

    replicas: int
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicas:
    """How many replicas there are."""

    live: int
    """Serving, starting or waiting for a GPU: what counts as capacity."""
    draining: int
    last_desired: int | None
    """The decision before this one, if any is known."""


def target(
    scaling: ManualScaling | AutoScaling, *, demand: Demand, current: Replicas, window: DemandWindow, at_s: float
) -> tuple[Target, DemandWindow]:
    """Return the number of replicas to have now, and the window with this reading in it."""
    match scaling:
        case ManualScaling():
            return _manual(scaling, current), window
        case AutoScaling():
            if not demand.is_complete:
                return _held(scaling, demand=demand, current=current, window=window), window.interrupted()
            span_s = scaling.scale_down_window_s
            window = window.with_sample(at_s=at_s, replicas=_needed(scaling, demand), window_s=span_s)
            is_full = window.is_full(at_s=at_s, window_s=span_s)
            return _measured(scaling, demand=demand, current=current, peak=window.peak(), is_full=is_full), window
        case _:
            assert_never(scaling)


def _manual(scaling: ManualScaling, current: Replicas) -> Target:
    message = f"replicas is {scaling.replicas}"
    return Target(replicas=_step(scaling.replicas, current), reason=Reason.MANUAL, message=message)


def _held(scaling: AutoScaling, *, demand: Demand, current: Replicas, window: DemandWindow) -> Target:
    """Hold the last decision; the engines that did answer may still raise it."""
    if current.last_desired is None and current.live == 0:
        message = f"starts at min = {scaling.min_replicas}"
        return Target(replicas=scaling.min_replicas, reason=Reason.FIRST_SEEN, message=message)
    wanted = _clamped(scaling, max(_last(current), window.peak(), _needed(scaling, demand)))
    if demand.asked == 0:
        return Target(replicas=wanted, reason=Reason.STEADY, message="no engine is ready to be asked yet")
    message = f"{demand.unread} of {demand.asked} engines do not report their load"
    return Target(replicas=wanted, reason=Reason.METRICS_LOST, message=message)


def _measured(scaling: AutoScaling, *, demand: Demand, current: Replicas, peak: int, is_full: bool) -> Target:
    wanted = _clamped(scaling, peak if is_full else max(peak, _last(current)))
    replicas = _step(wanted, current)
    message = f"{demand.active} streams and {demand.queued} queued at {scaling.streams_per_replica} a replica"
    if replicas > _last(current):
        return Target(replicas=replicas, reason=Reason.DEMAND_ROSE, message=message)
    if replicas < _last(current):
        if _last(current) > scaling.max_replicas:
            return Target(replicas=replicas, reason=Reason.LIMITS_CHANGED, message=f"max is {scaling.max_replicas}")
        message = f"{message}; no more than {peak} were needed for {scaling.scale_down_window_s:g} s"
        return Target(replicas=replicas, reason=Reason.DEMAND_FELL, message=message)
    if peak >= replicas:
        return Target(replicas=replicas, reason=Reason.STEADY, message=message)
    reason = Reason.DRAINING if is_full else Reason.WAITING_FOR_WINDOW
    return Target(replicas=replicas, reason=reason, message=message)


def _needed(scaling: AutoScaling, demand: Demand) -> int:
    return _clamped(scaling, -(-demand.streams // scaling.streams_per_replica))


def _clamped(scaling: AutoScaling, replicas: int) -> int:
    return min(max(replicas, scaling.min_replicas), scaling.max_replicas)


def _last(current: Replicas) -> int:
    """Return the number decided on before, which a failed engine does not lower."""
    return max(current.live, current.last_desired or 0)


def _step(wanted: int, current: Replicas) -> int:
    """Return `wanted`, but not below one less than there are, and not below those at all while one still drains."""
    is_settled = current.draining == 0 and _last(current) == current.live
    return max(wanted, current.live - 1 if is_settled else current.live)
