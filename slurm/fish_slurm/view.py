"""What the filler sees of a cluster, as records. No I/O; both parsing and deciding speak these words."""

from dataclasses import dataclass
from enum import StrEnum

from fish_contracts.exit_codes import ExitCode


class Phase(StrEnum):
    """Where a job is in its life. `OTHER` is a state of a newer Slurm: the job counts as alive and is left alone."""

    PENDING = "pending"
    RUNNING = "running"
    ENDED = "ended"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """Which worker of which cleaning job a job is."""

    name: str
    slot: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job, or what is left of a pending array."""

    job_id: int
    user_id: int
    phase: Phase
    state: str
    """Slurm's own word, for people."""
    reason: str
    partition: str
    gpus: int
    """All that it asks for; of a pending array, what the tasks that may run at once ask for."""
    restarts: int
    exit_status: int
    """Of the batch process: 0-255, or minus the signal that ended it."""
    submitted_at_s: int
    """Submitted or, after that, last put back into the queue."""
    started_at_s: int | None
    label: Label | None = None
    """Set on the filler's own jobs only."""

    @property
    def is_delayed(self) -> bool:
        """Whether it waits for its begin time, as each requeued job does for AuthInfo=cred_expire and a second."""
        return self.phase is Phase.PENDING and self.reason == "BeginTime"

    @property
    def waits_for_gpus(self) -> bool:
        """Whether nothing but GPUs keeps it from running: no hold, dependency, limit or begin time."""
        return self.phase is Phase.PENDING and self.reason in {"Resources", "Priority", "None"}

    @property
    def is_held(self) -> bool:
        """Whether someone put it on hold."""
        return self.phase is Phase.PENDING and self.reason.startswith("JobHeld")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node of the cleaning partition."""

    name: str
    gpus: int
    used_gpus: int
    takes_work: bool
    """Not down, draining, reserved or on its way to either."""
    reason: str
    """Why an administrator, or Slurm, took it out."""

    @property
    def idle_gpus(self) -> int:
        """GPUs on which a job could start now."""
        return max(0, self.gpus - self.used_gpus) if self.takes_work else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """What a worker said at the end of one run."""

    is_complete: bool
    """The whole cleaning job was done, not only this worker's part."""
    items_finished: int
    stop_s: float | None
    """From SIGTERM until everything was safe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """Everything that one decision is made from."""

    now_s: float
    jobs: tuple[Job, ...]
    nodes: tuple[Node, ...]
    summaries: dict[tuple[int, int], RunSummary]
    """By job id and run, counted from 0; of runs that ended and said something."""


HOPELESS = frozenset({ExitCode.USAGE, ExitCode.BAD_INPUT, ExitCode.CONFIG})
"""Exit statuses after which starting again cannot help."""
