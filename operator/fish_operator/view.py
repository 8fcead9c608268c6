"""What the operator sees in one tick, as records: with `History`, all that deciding knows.

Not how it is read: `wire` turns JSON into these records, `observe` asks for the JSON.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from fish_contracts.priority import WorkClass
from fish_contracts.reports import LoadReport, ProgressReport
from fish_operator.notes import ReclaimNote
from fish_operator.spec import DeploymentSpec, JobSpec, SpecProblem
from fish_operator.status import DeploymentStatus, JobStatus


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ObjectKey:
    """Where an object lives."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class PodStage(StrEnum):
    """How far a pod is through its life. Every pod is in exactly one stage."""

    UNSCHEDULED = "unscheduled"
    STARTING = "starting"
    READY = "ready"
    """An engine that takes streams, or a worker whose process runs."""
    UNREADY = "unready"
    """An engine that was ready and now is not; it may still hold streams."""
    LOST = "lost"
    """On a node that does not answer: neither capacity nor free, until the node is back or given up."""
    TERMINATING = "terminating"
    """Asked to go; holds its GPUs until it has ended."""
    ENDED = "ended"
    """In a terminal phase; holds nothing."""


LIVE_STAGES = frozenset({PodStage.UNSCHEDULED, PodStage.STARTING, PodStage.READY, PodStage.UNREADY})


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """One node and the GPUs it offers."""

    name: str
    gpus: int
    unhealthy_gpus: int
    """GPUs that the machine has and cannot offer: broken ones, or all of them when the node is lost."""
    is_ready: bool
    """The node answers."""
    is_schedulable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PodEnd:
    """How a pod came to its terminal phase."""

    exit_code: int | None
    """None when no process of it ever ended, as with a lost node or a refused admission."""
    finished_at_s: float
    reason: str
    message: str
    """Its last words, for people; may be empty."""
    was_deleted: bool
    """Somebody asked it to go: the operator, the scheduler, a user or a node drain."""
    disruption: str
    """Reason of its `DisruptionTarget` condition, or empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodView:
    """One pod that holds or wants GPUs."""

    key: ObjectKey
    uid: str
    work_class: WorkClass | None
    """None for pods that are not the operator's; they only take up GPUs."""
    owner: ObjectKey | None
    node: str | None
    ip: str | None
    gpus: int
    stage: PodStage
    is_draining: bool
    created_at_s: float
    scheduled_at_s: float | None
    started_at_s: float | None
    ready_at_s: float | None
    waiting: str
    """What keeps it from starting, as its node puts it; may be empty."""
    failures: int
    """How often in a row its predecessors failed."""
    note: ReclaimNote | None
    end: PodEnd | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentView:
    """One TTSDeployment."""

    key: ObjectKey
    uid: str
    generation: int
    created_at_s: float
    spec: DeploymentSpec | SpecProblem
    status: DeploymentStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """One CleaningJob."""

    key: ObjectKey
    uid: str
    generation: int
    created_at_s: float
    spec: JobSpec | SpecProblem
    status: JobStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """Everything, at one moment."""

    now_s: float
    """Seconds since the epoch: comparable with the API server's times."""
    monotonic_s: float
    """Seconds of a clock that nobody sets: for windows."""
    nodes: tuple[NodeView, ...]
    pods: tuple[PodView, ...]
    departed: tuple[PodView, ...]
    """Ended pods that are gone from the API; a watch saw their end."""
    deployments: tuple[DeploymentView, ...]
    jobs: tuple[JobView, ...]
    loads: Mapping[str, LoadReport]
    """By pod uid; engines that did not answer are absent."""
    progress: Mapping[str, ProgressReport]
    """By pod uid; workers that did not answer are absent."""
