"""What to do, as records: the output of deciding and the input of `apply`. Pure.

Each action is safe to repeat and safe to lose: the next tick looks again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from fish_operator.notes import ReclaimNote
from fish_operator.spec import DeploymentSpec, JobSpec
from fish_operator.status import DeploymentStatus, JobStatus, Reason, ReclaimEntry
from fish_operator.view import ObjectKey, PodView


class GpuState(StrEnum):
    """What one GPU is doing. Every GPU is in exactly one state, so the seconds add up to GPUs × time."""

    SERVING = "serving"
    LOADING = "loading"
    """Held by a pod that does not work yet."""
    DRAINING = "draining"
    FILL = "fill"
    CHECKPOINTING = "checkpointing"
    """Held by a fill worker on its way out."""
    FREE = "free"
    UNHEALTHY = "unhealthy"
    OTHER = "other"
    """Held by pods that are not ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateEngine:
    """Create an engine pod; its GPUs are free."""

    owner: ObjectKey
    owner_uid: str
    spec: DeploymentSpec
    name: str
    failures: int
    note: ReclaimNote | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateWorker:
    """Create a fill worker's pod; its GPUs are free and no engine wants them."""

    owner: ObjectKey
    owner_uid: str
    spec: JobSpec
    name: str
    failures: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictWorker:
    """Ask a fill worker to go, with its own grace."""

    pod: PodView
    note: ReclaimNote


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainEngine:
    """Mark an engine as draining, then ask it to go; it finishes its streams within its grace."""

    pod: PodView


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovePod:
    """Delete a pod that holds nothing: ended and accounted for, or never scheduled."""

    pod: PodView


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteDeploymentStatus:
    """Say what was seen and decided about a TTSDeployment."""

    key: ObjectKey
    status: DeploymentStatus
    before: DeploymentStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteJobStatus:
    """Say what was seen and decided about a CleaningJob."""

    key: ObjectKey
    status: JobStatus
    before: JobStatus


PodAction = CreateEngine | CreateWorker | EvictWorker | DrainEngine | RemovePod
StatusAction = WriteDeploymentStatus | WriteJobStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleDecided:
    """The number of replicas changed."""

    owner: ObjectKey
    before: int
    after: int
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerEnded:
    """A fill worker came to its end."""

    pod: PodView
    outcome: Literal["complete", "checkpointed", "forced", "failed"]
    cause: Literal["operator", "scheduler", "node", "user", "itself"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFailed:
    """An engine ended though nobody asked it to."""

    pod: PodView
    retry_at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReclaimDone:
    """A GPU arrived at its engine."""

    owner: ObjectKey
    entry: ReclaimEntry


Event = ScaleDecided | WorkerEnded | EngineFailed | ReclaimDone


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All that one tick decided."""

    pods: tuple[PodAction, ...] = ()
    statuses: tuple[StatusAction, ...] = ()
    events: tuple[Event, ...] = ()
    gpu_states: Mapping[GpuState, int] = field(default_factory=dict)
    unread_metrics: int = 0
    """Engines that should have reported their load and did not."""
