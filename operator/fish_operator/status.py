"""What the operator says about each custom resource: the records behind `kubectl get` and `kubectl describe`. Pure.

Field names are the CRDs' names in snake case; `status_json` translates.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, Literal

MAX_DECISIONS: Final = 5
MAX_RECLAIMS: Final = 20


class Reason(StrEnum):
    """Why a number of replicas was decided on."""

    FIRST_SEEN = "FirstSeen"
    DEMAND_ROSE = "DemandRose"
    DEMAND_FELL = "DemandFell"
    MANUAL = "Manual"
    LIMITS_CHANGED = "LimitsChanged"
    STEADY = "Steady"
    WAITING_FOR_WINDOW = "WaitingForWindow"
    DRAINING = "Draining"
    METRICS_LOST = "MetricsLost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One entry of `status.conditions`."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str
    last_transition_time: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Streams over all engines that answered."""

    streams: int
    queued: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionEntry:
    """One change of the number of replicas."""

    time: str
    from_replicas: int
    to_replicas: int
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReclaimStages:
    """Seconds of each step from load seen to engine ready; they add up to the total."""

    decide: float
    """Load seen → eviction sent."""
    free: float
    """Eviction sent → worker ended, GPU free."""
    create: float
    """GPU free → engine pod created."""
    schedule: float
    """Engine pod created → bound to a node."""
    start: float
    """Bound → process running."""
    ready: float
    """Process running → takes streams."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReclaimEntry:
    """One GPU that went from a fill worker to an engine."""

    pod: str
    pod_uid: str
    victim: str
    started_at: float
    """Seconds since the epoch at which the load was seen."""
    stages: ReclaimStages
    total_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentStatus:
    """Status of a TTSDeployment."""

    observed_generation: int = 0
    desired_replicas: int | None = None
    replicas: int = 0
    ready_replicas: int = 0
    pending_replicas: int = 0
    draining_replicas: int = 0
    selector: str = ""
    load: Load | None = None
    decisions: tuple[DecisionEntry, ...] = ()
    reclaims: tuple[ReclaimEntry, ...] = ()
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """Pods of a CleaningJob."""

    desired: int = 0
    running: int = 0
    evicting: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Evictions:
    """Workers that were made to stop, by how they took it."""

    total: int = 0
    checkpointed: int = 0
    """Ended by themselves in time: nothing that was committed is done again."""
    forced: int = 0
    """Killed at the end of their grace, or with their node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """Units of work."""

    total: int = 0
    committed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """Recordings."""

    total: int = 0
    committed: int = 0
    rejected: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """Status of a CleaningJob."""

    observed_generation: int = 0
    percent: int = 0
    units: Units = Units()
    items: Items = Items()
    workers: Workers = Workers()
    evictions: Evictions = Evictions()
    accounted_pods: tuple[str, ...] = ()
    """Ended pods, by uid, that the counts contain: with this a restarted operator counts none twice."""
    completed_at: str | None = None
    failed_generation: int | None = None
    """Generation of the spec that a worker refused as unusable: no more workers until the spec changes."""
    conditions: tuple[Condition, ...] = ()


def timestamp(epoch_s: float) -> str:
    """Return a time as Kubernetes writes it."""
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def merge_conditions(before: Sequence[Condition], after: Sequence[Condition], *, now_s: float) -> tuple[Condition, ...]:
    """Return `after`, where each condition keeps its transition time unless its status changed."""
    old = {condition.type: condition for condition in before}
    return tuple(_dated(condition, old.get(condition.type), now_s) for condition in after)


def _dated(condition: Condition, before: Condition | None, now_s: float) -> Condition:
    kept = before is not None and before.status == condition.status and before.last_transition_time
    return replace(condition, last_transition_time=kept or timestamp(now_s))
