"""The statuses that a tick writes. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from fish_contracts.labels import OWNER, WORK_CLASS
from fish_contracts.priority import WorkClass
from fish_operator.conditions import deployment_conditions, job_conditions, refused_spec
from fish_operator.fill import Crew
from fish_operator.fleet import Fleet
from fish_operator.plan import ScaleDecided, WorkerEnded
from fish_operator.spec import SpecProblem
from fish_operator.status import (
    MAX_DECISIONS,
    MAX_RECLAIMS,
    DecisionEntry,
    DeploymentStatus,
    Evictions,
    Items,
    JobStatus,
    Load,
    ReclaimEntry,
    Units,
    Workers,
    merge_conditions,
    timestamp,
)
from fish_operator.victims import Placement
from fish_operator.view import ClusterView, DeploymentView, JobView, PodStage


def refused_deployment(view: ClusterView, deployment: DeploymentView, problem: SpecProblem) -> DeploymentStatus:
    """Return the status of a deployment whose spec cannot be used."""
    before = deployment.status
    conditions = merge_conditions(before.conditions, refused_spec(problem), now_s=view.now_s)
    return replace(before, observed_generation=deployment.generation, conditions=conditions)


def refused_job(view: ClusterView, job: JobView, problem: SpecProblem) -> JobStatus:
    """Return the status of a job whose spec cannot be used."""
    conditions = merge_conditions(job.status.conditions, refused_spec(problem), now_s=view.now_s)
    return replace(job.status, observed_generation=job.generation, conditions=conditions)


def scale_decided(fleet: Fleet) -> ScaleDecided | None:
    """Return the change of replicas, if this tick decided on one."""
    before = fleet.deployment.status.desired_replicas
    after = fleet.target.replicas
    if after == before or (before is None and after == 0):
        return None
    return ScaleDecided(
        owner=fleet.deployment.key,
        before=before or 0,
        after=after,
        reason=fleet.target.reason,
        message=fleet.target.message,
    )


def deployment_status(
    view: ClusterView,
    fleet: Fleet,
    placements: tuple[Placement, ...],
    arrived: Sequence[ReclaimEntry],
    *,
    refusal: str | None,
) -> DeploymentStatus:
    """Return the status of a deployment after this tick's decisions; `refusal` is why its last pod was not created."""
    before = fleet.deployment.status
    decided = scale_decided(fleet)
    entries = (_decision_entry(decided, view.now_s),) if decided else ()
    ready = sum(pod.stage is PodStage.READY for pod in fleet.live)
    load = Load(streams=fleet.demand.active, queued=fleet.demand.queued)
    return DeploymentStatus(
        observed_generation=fleet.deployment.generation,
        desired_replicas=fleet.target.replicas,
        replicas=len(fleet.live),
        ready_replicas=ready,
        pending_replicas=max(0, fleet.target.replicas - ready),
        draining_replicas=len(fleet.leaving),
        selector=f"{WORK_CLASS}={WorkClass.INFERENCE},{OWNER}={fleet.deployment.key.name}",
        load=load if fleet.demand.is_complete else before.load,
        decisions=(*before.decisions, *entries)[-MAX_DECISIONS:],
        reclaims=(*before.reclaims, *arrived)[-MAX_RECLAIMS:],
        conditions=merge_conditions(
            before.conditions, deployment_conditions(fleet, placements, refusal), now_s=view.now_s
        ),
    )


def _decision_entry(decided: ScaleDecided, now_s: float) -> DecisionEntry:
    return DecisionEntry(
        time=timestamp(now_s),
        from_replicas=decided.before,
        to_replicas=decided.after,
        reason=decided.reason,
        message=decided.message,
    )


def job_status(
    view: ClusterView, crew: Crew, news: Sequence[WorkerEnded], *, created: int, refusal: str | None
) -> JobStatus:
    """Return the status of a job; `news` are the ends that no status has counted, `created` the workers on their way."""
    before = crew.job.status
    units, items = _progress(view, crew)
    running = sum(pod.stage is PodStage.READY for pod in crew.live)
    return JobStatus(
        observed_generation=crew.job.generation,
        percent=100 if crew.is_complete else min(99, 100 * units.committed // max(1, units.total)),
        units=units,
        items=items,
        workers=Workers(
            desired=len(crew.live) + created,
            running=running,
            evicting=sum(pod.stage is PodStage.TERMINATING for pod in crew.workers),
        ),
        evictions=_evictions(before.evictions, news),
        accounted_pods=tuple(sorted(end.pod.uid for end in crew.ended if end.pod in crew.workers)),
        completed_at=before.completed_at or (timestamp(view.now_s) if crew.is_complete else None),
        failed_generation=crew.job.generation if crew.is_failed else None,
        conditions=merge_conditions(before.conditions, job_conditions(crew, refusal), now_s=view.now_s),
    )


def _progress(view: ClusterView, crew: Crew) -> tuple[Units, Items]:
    """Return the furthest that any worker has reported; what is committed stays committed."""
    units, items = crew.job.status.units, crew.job.status.items
    for pod in crew.workers:
        report = view.progress.get(pod.uid)
        if report and report.units_total and report.units_committed >= units.committed:
            units = Units(total=report.units_total, committed=report.units_committed)
            items = Items(total=report.items_total, committed=report.items_committed, rejected=report.items_rejected)
    if crew.is_complete:
        units = replace(units, committed=units.total)  # the last worker leaves before it can be asked again
    return units, items


def _evictions(before: Evictions, news: Sequence[WorkerEnded]) -> Evictions:
    checkpointed = sum(end.outcome == "checkpointed" for end in news)
    forced = sum(end.outcome == "forced" for end in news)
    return Evictions(
        total=before.total + checkpointed + forced,
        checkpointed=before.checkpointed + checkpointed,
        forced=before.forced + forced,
    )
