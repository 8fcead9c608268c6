"""Decides what the filler does next (pure): a look at the cluster in, a plan out.

Taking GPUs back is Slurm's: it does so in a third of a second and in the right order, and a second hand in it would evict twice.
Here is only the other direction. What may wait for whom is `fish_contracts.priority`, as for the Kubernetes operator.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from fish_contracts.priority import Holder, Reclaim, WorkClass, may_preempt, plan_reclaim
from fish_slurm.brake import Memory, remember
from fish_slurm.view import ClusterView, Job, Phase

Work: TypeAlias = Mapping[str, int]
"""Cleaning jobs in order of preference, and how many workers each may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How the filler behaves."""

    pending_buffer: int = 8
    """New workers kept waiting in the queue, so that Slurm itself refills in the moment that GPUs come free."""
    requeue_wait_s: float = 2.0
    """A job that starts again in the second of its requeue is killed by slurmd: "Job credential revoked"."""
    strikes: int = 3
    """Runs or workers in a row without progress before a hold."""
    submits_a_tick: int = 50
    """So that a large cluster is looked at between two batches."""
    min_useful_run_s: float = 30.0
    """A shorter run is no sign of anything."""
    partition_classes: Mapping[str, WorkClass]
    """What partitions are for; work in any other is training."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartNow:
    """Let a requeued job run as soon as there is a GPU."""

    job_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Keep a job from running until a person looked at it."""

    job_id: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """Remove a pending job that should not exist."""

    job_id: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Submit:
    """Add a worker."""

    name: str
    slot: int


Action: TypeAlias = StartNow | Hold | Cancel | Submit


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to do, and what was learnt."""

    actions: tuple[Action, ...]
    memory: Memory
    idle_gpus: int
    """GPUs that nothing uses and no training is about to take."""
    backlog_workers: int
    """Workers that the cleaning jobs would still take."""
    stopped: Mapping[str, str]
    """Cleaning jobs that get no more workers, and why."""


def decide(view: ClusterView, work: Work, memory: Memory, limits: Limits) -> Plan:
    """Return what the filler should do now."""
    memory = remember(memory, view, min_useful_run_s=limits.min_useful_run_s)
    stopped = _stopped(work, memory, limits)
    own = [job for job in view.jobs if job.label and job.label.name in work and job.phase is not Phase.ENDED]
    surplus = _surplus(own, stopped)
    held = {job.job_id for job in own if job.is_held}
    stuck = {job_id for job_id, count in memory.strikes.items() if count >= limits.strikes}
    idle = sum(node.idle_gpus for node in view.nodes)
    idle -= min(idle, _claimed_gpus(view, idle, limits))
    free_slots = _free_slots(own, work, stopped)
    barred = stuck | surplus.keys()
    waiting = sum(1 for job in own if job.phase is Phase.PENDING and job.job_id not in barred and not job.is_held)
    wanted = max(0, idle + limits.pending_buffer - waiting) if view.nodes else 0
    actions: list[Action] = [Cancel(job_id=job_id, reason=reason) for job_id, reason in surplus.items()]
    actions += _holds(own, stuck - held - surplus.keys(), limits)
    actions += [StartNow(job_id=job.job_id) for job in own if _may_start(job, view.now_s, barred, limits)]
    actions += free_slots[: min(wanted, limits.submits_a_tick)]
    return Plan(
        actions=tuple(actions),
        memory=memory,
        idle_gpus=idle,
        backlog_workers=len(free_slots) + waiting,
        stopped=stopped,
    )


def class_of(job: Job, limits: Limits) -> WorkClass:
    """Return what a job is, by its partition."""
    return limits.partition_classes.get(job.partition, WorkClass.TRAINING)


def _claimed_gpus(view: ClusterView, idle_gpus: int, limits: Limits) -> int:
    """Count GPUs for which work that comes before cleaning stands in line and can have them.

    Work that even all of cleaning could not make room for claims nothing: it waits for others of its kind, and cleaning that
    starts meanwhile can be taken back in a second.
    """
    holders = [
        Holder(
            name=str(job.job_id),
            work_class=class_of(job, limits),
            gpus=job.gpus,
            started_at_s=job.started_at_s or 0,
            work_at_risk_s=max(0.0, view.now_s - (job.started_at_s or 0)),
        )
        for job in view.jobs
        if job.phase is Phase.RUNNING
    ]
    claimed = 0
    for job in view.jobs:
        if claimed >= idle_gpus:
            break
        work_class = class_of(job, limits)
        if not job.waits_for_gpus or not may_preempt(work_class, WorkClass.CLEANING):
            continue
        needed = claimed + job.gpus
        plan = plan_reclaim(claimant=work_class, needed_gpus=needed, available_gpus=idle_gpus, holders=holders)
        if isinstance(plan, Reclaim):
            claimed = needed
    return claimed


def _stopped(work: Work, memory: Memory, limits: Limits) -> dict[str, str]:
    reasons = {}
    for name in work:
        if name in memory.complete:
            reasons[name] = "complete"
        elif name in memory.hopeless:
            reasons[name] = memory.hopeless[name]
        elif memory.failures.get(name, 0) >= limits.strikes:
            reasons[name] = f"{memory.failures[name]} workers in a row failed without finishing a recording"
    return reasons


def _surplus(own: Sequence[Job], stopped: Mapping[str, str]) -> dict[int, str]:
    """Name the pending jobs that should not be: a second one for a slot, or one whose cleaning job is over."""
    surplus, taken = {}, set()
    for job in sorted(own, key=lambda job: (job.phase is Phase.PENDING, job.job_id)):
        assert job.label is not None
        if job.phase is not Phase.PENDING:
            taken.add(job.label)
        elif job.label.name in stopped:
            surplus[job.job_id] = f"cleaning job {job.label.name}: {stopped[job.label.name]}"
        elif job.label in taken:
            surplus[job.job_id] = f"slot {job.label.slot} of {job.label.name} has a job already"
        else:
            taken.add(job.label)
    return surplus


def _free_slots(own: Iterable[Job], work: Work, stopped: Mapping[str, str]) -> list[Submit]:
    taken = {(job.label.name, job.label.slot) for job in own if job.label is not None}
    return [
        Submit(name=name, slot=slot)
        for name, workers in work.items()
        if name not in stopped
        for slot in range(workers)
        if (name, slot) not in taken
    ]


def _holds(own: Iterable[Job], stuck: set[int], limits: Limits) -> list[Action]:
    reason = f"{limits.strikes} runs in a row without finishing a recording"
    return [Hold(job_id=job.job_id, reason=reason) for job in own if job.job_id in stuck and job.phase is Phase.PENDING]


def _may_start(job: Job, now_s: float, barred: set[int], limits: Limits) -> bool:
    # Slurm counts whole seconds; the second of the requeue itself must be over.
    waited_s = int(now_s) - job.submitted_at_s
    return job.is_delayed and job.restarts > 0 and waited_s >= limits.requeue_wait_s and job.job_id not in barred
