"""One CleaningJob: what became of its workers, and how many more it can use. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from fish_contracts.exit_codes import ExitCode
from fish_contracts.priority import WorkClass
from fish_operator.backoff import Backoff, backoff
from fish_operator.plan import WorkerEnded
from fish_operator.spec import JobSpec
from fish_operator.view import LIVE_STAGES, ClusterView, JobView, PodStage, PodView

_HOPELESS: Final = frozenset({ExitCode.USAGE, ExitCode.BAD_INPUT, ExitCode.CONFIG})
"""Starting again will not help until somebody changes the spec."""
_CAUSES: Final[dict[str, Literal["scheduler", "node"]]] = {
    "PreemptionByScheduler": "scheduler",
    "DeletionByTaintManager": "node",
    "TerminationByKubelet": "node",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """The workers of one job."""

    job: JobView
    spec: JobSpec
    workers: tuple[PodView, ...]
    ended: tuple[WorkerEnded, ...]
    """All ends that can be seen, those that were counted before included."""
    backoff: Backoff
    units_left: int | None
    """None while no worker has said."""

    @property
    def live(self) -> tuple[PodView, ...]:
        """Workers that work or are about to."""
        return tuple(pod for pod in self.workers if pod.stage in LIVE_STAGES)

    @property
    def unscheduled(self) -> tuple[PodView, ...]:
        """Workers without a node: they could take a GPU at any moment."""
        return tuple(pod for pod in self.workers if pod.stage is PodStage.UNSCHEDULED)

    @property
    def is_complete(self) -> bool:
        """Every unit is committed: a worker said so, now or before."""
        return self.job.status.completed_at is not None or any(end.outcome == "complete" for end in self.ended)

    @property
    def hopeless(self) -> WorkerEnded | None:
        """The end of a worker that says that starting again will not help; news only, not what the status says already."""
        fresh = (end for end in self.ended if end.pod.uid not in self.job.status.accounted_pods)
        return next((end for end in fresh if end.outcome == "failed" and exit_code(end) in _HOPELESS), None)

    @property
    def is_failed(self) -> bool:
        """No more workers until the spec changes."""
        return self.hopeless is not None or self.job.status.failed_generation == self.job.generation

    @property
    def openings(self) -> int:
        """Workers that the job could still use."""
        if self.is_complete or self.is_failed:
            return 0
        useful = self.spec.max_workers if self.units_left is None else min(self.spec.max_workers, self.units_left)
        return max(0, useful - len(self.live) - len(self.backoff.waiting))


def read_crew(view: ClusterView, job: JobView, spec: JobSpec, workers: tuple[PodView, ...]) -> Crew:
    """Read one job by its workers."""
    gone = [pod for pod in view.departed if pod.owner == job.key and pod.work_class is WorkClass.CLEANING]
    ended = tuple(_read_end(pod) for pod in (*workers, *gone) if pod.end is not None)
    failed = [end.pod for end in ended if end.outcome == "failed"]
    return Crew(
        job=job,
        spec=spec,
        workers=workers,
        ended=ended,
        backoff=backoff(failed, now_s=view.now_s),
        units_left=_units_left(view, workers),
    )


def _units_left(view: ClusterView, workers: Sequence[PodView]) -> int | None:
    reports = [view.progress[pod.uid] for pod in workers if pod.uid in view.progress]
    known = [report for report in reports if report.units_total]
    return min((report.units_total - report.units_committed for report in known), default=None)


def _read_end(pod: PodView) -> WorkerEnded:
    end = pod.end
    assert end is not None
    if end.exit_code == ExitCode.DONE:
        return WorkerEnded(pod=pod, outcome="complete", cause="itself")
    if end.exit_code == ExitCode.PREEMPTED:
        return WorkerEnded(pod=pod, outcome="checkpointed", cause=_cause(pod))
    if end.was_deleted or end.disruption:
        return WorkerEnded(pod=pod, outcome="forced", cause=_cause(pod))
    return WorkerEnded(pod=pod, outcome="failed", cause="itself")


def _cause(pod: PodView) -> Literal["operator", "scheduler", "node", "user"]:
    assert pod.end is not None
    return "operator" if pod.note else _CAUSES.get(pod.end.disruption, "user")


def exit_code(end: WorkerEnded) -> int | None:
    """Return the exit code of an ended worker."""
    return end.pod.end.exit_code if end.pod.end else None


def share(crews: Sequence[Crew], free_gpus: Sequence[int]) -> list[Crew]:
    """Return whose worker to create next, again and again until GPUs or openings run out: fewest workers first.

    `free_gpus` are the GPUs left on each node; one worker's GPUs are all on one node.
    """
    left = list(free_gpus)
    chosen: list[Crew] = []
    counts = [len(crew.live) for crew in crews]
    openings = [crew.openings for crew in crews]
    for _ in range(sum(left)):
        able = [
            index
            for index, crew in enumerate(crews)
            if openings[index] and any(gpus >= crew.spec.pod.gpus for gpus in left)
        ]
        if not able:
            break
        index = min(able, key=lambda index: (counts[index], crews[index].job.created_at_s, crews[index].job.key))
        need = crews[index].spec.pod.gpus
        node = min((node for node, gpus in enumerate(left) if gpus >= need), key=left.__getitem__)
        left[node] -= need
        counts[index] += 1
        openings[index] -= 1
        chosen.append(crews[index])
    return chosen
