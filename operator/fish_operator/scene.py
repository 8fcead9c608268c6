"""What all parts of one decision share: the view, read into fleets, crews and seats. Pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fish_contracts.priority import WorkClass
from fish_operator.demand import DemandWindow
from fish_operator.fill import Crew, read_crew
from fish_operator.fleet import Fleet, read_fleet
from fish_operator.history import History, Sighting
from fish_operator.plan import WorkerEnded
from fish_operator.reclaim import Freeing, arrivals, follow, sightings
from fish_operator.seating import Seating, seat_all
from fish_operator.spec import DeploymentSpec, JobSpec
from fish_operator.status import ReclaimEntry
from fish_operator.view import ClusterView, ObjectKey, PodView

_Owned = tuple[WorkClass | None, ObjectKey | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One moment, understood."""

    view: ClusterView
    history: History
    fleets: tuple[Fleet, ...]
    crews: tuple[Crew, ...]
    seating: Seating
    short_since_s: Mapping[ObjectKey, tuple[float, ...]]
    freeing: Freeing
    sightings: Mapping[str, Sighting]

    @property
    def unscheduled_workers(self) -> tuple[PodView, ...]:
        """Workers without a node: they could take a GPU at any moment."""
        return tuple(pod for crew in self.crews for pod in crew.unscheduled)

    def news(self, crew: Crew) -> tuple[WorkerEnded, ...]:
        """Return the ends that nothing has counted yet."""
        known = self.history.accounted | frozenset(crew.job.status.accounted_pods)
        return tuple(end for end in crew.ended if end.pod.uid not in known)

    def arrived(self, fleet: Fleet) -> tuple[ReclaimEntry, ...]:
        """Return the reclaims that came to their end since the status was written."""
        return arrivals(fleet.engines, fleet.deployment.status, self.sightings, now_s=self.view.now_s)


def read_scene(view: ClusterView, history: History) -> Scene:
    """Understand a view, with what is remembered."""
    pods = _pods_by_owner(view)
    fleets = _fleets(view, history.windows, pods)
    return Scene(
        view=view,
        history=history,
        fleets=fleets,
        crews=_crews(view, pods),
        seating=seat_all(view, fleets),
        short_since_s=_short_since(view, history, fleets),
        freeing=follow(view, history),
        sightings=sightings(view, history),
    )


def _pods_by_owner(view: ClusterView) -> defaultdict[_Owned, tuple[PodView, ...]]:
    """Return each resource's pods, oldest first."""
    owned: defaultdict[_Owned, tuple[PodView, ...]] = defaultdict(tuple)
    for pod in sorted(view.pods, key=lambda pod: (pod.created_at_s, pod.key)):
        owned[pod.work_class, pod.owner] += (pod,)
    return owned


def _fleets(
    view: ClusterView, windows: Mapping[ObjectKey, DemandWindow], pods: Mapping[_Owned, tuple[PodView, ...]]
) -> tuple[Fleet, ...]:
    return tuple(
        read_fleet(
            view,
            deployment,
            deployment.spec,
            pods[WorkClass.INFERENCE, deployment.key],
            windows.get(deployment.key, DemandWindow()),
        )
        for deployment in view.deployments
        if isinstance(deployment.spec, DeploymentSpec)
    )


def _crews(view: ClusterView, pods: Mapping[_Owned, tuple[PodView, ...]]) -> tuple[Crew, ...]:
    return tuple(
        read_crew(view, job, job.spec, pods[WorkClass.CLEANING, job.key])
        for job in view.jobs
        if isinstance(job.spec, JobSpec)
    )


def _short_since(view: ClusterView, history: History, fleets: Sequence[Fleet]) -> dict[ObjectKey, tuple[float, ...]]:
    """Return, for each missing engine, since when it has been missing: the longest waiting is served first."""
    short: dict[ObjectKey, tuple[float, ...]] = {}
    for fleet in fleets:
        before = history.short_since_s.get(fleet.deployment.key, ())
        served = max(0, len(before) - fleet.missing)
        short[fleet.deployment.key] = (*before[served:], *[view.now_s] * (fleet.missing - len(before)))
    return short
