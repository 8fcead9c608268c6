"""What one decision says: a status for every custom resource, and events for metrics and the log. Pure."""

from collections.abc import Sequence

from fish_operator.backoff import retry_at_s
from fish_operator.plan import (
    CreateWorker,
    EngineFailed,
    Event,
    PodAction,
    ReclaimDone,
    StatusAction,
    WriteDeploymentStatus,
    WriteJobStatus,
)
from fish_operator.report import deployment_status, job_status, refused_deployment, refused_job, scale_decided
from fish_operator.scene import Scene
from fish_operator.spec import SpecProblem


def statuses(scene: Scene, actions: Sequence[PodAction]) -> list[StatusAction]:
    """Return the status of every resource, after these actions."""
    return [*_refusals(scene), *_deployments(scene), *_jobs(scene, actions)]


def _refusals(scene: Scene) -> list[StatusAction]:
    view, writes = scene.view, list[StatusAction]()
    for deployment in view.deployments:
        if isinstance(deployment.spec, SpecProblem):
            status = refused_deployment(view, deployment, deployment.spec)
            writes.append(WriteDeploymentStatus(key=deployment.key, status=status, before=deployment.status))
    for job in view.jobs:
        if isinstance(job.spec, SpecProblem):
            refused = refused_job(view, job, job.spec)
            writes.append(WriteJobStatus(key=job.key, status=refused, before=job.status))
    return writes


def _deployments(scene: Scene) -> list[StatusAction]:
    writes: list[StatusAction] = []
    for fleet in scene.fleets:
        key, before = fleet.deployment.key, fleet.deployment.status
        placements = tuple(seat.placement for seat in scene.seating.seats if seat.owner == key)
        after = deployment_status(
            scene.view,
            fleet,
            placements,
            scene.arrived(fleet),
            refusal=scene.history.refusals.get(fleet.deployment.uid),
        )
        writes.append(WriteDeploymentStatus(key=key, status=after, before=before))
    return writes


def _jobs(scene: Scene, actions: Sequence[PodAction]) -> list[StatusAction]:
    writes: list[StatusAction] = []
    for crew in scene.crews:
        key = crew.job.key
        created = sum(isinstance(action, CreateWorker) and action.owner == key for action in actions)
        after = job_status(
            scene.view,
            crew,
            scene.news(crew),
            created=created,
            refusal=scene.history.refusals.get(crew.job.uid),
        )
        writes.append(WriteJobStatus(key=key, status=after, before=crew.job.status))
    return writes


def events(scene: Scene) -> list[Event]:
    """Return what happened, each once."""
    told: list[Event] = []
    for fleet in scene.fleets:
        decided = scale_decided(fleet)
        told += [decided] if decided else []
        told += [ReclaimDone(owner=fleet.deployment.key, entry=entry) for entry in scene.arrived(fleet)]
        told += [
            EngineFailed(pod=pod, retry_at_s=retry_at_s(pod))
            for pod in (*fleet.backoff.waiting, *fleet.backoff.over)
            if pod.uid not in scene.history.accounted
        ]
    for crew in scene.crews:
        told += scene.news(crew)
    return told
