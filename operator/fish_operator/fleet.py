"""One TTSDeployment: which of its engines stay, go, or are missing. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from fish_operator.backoff import Backoff, backoff
from fish_operator.demand import Demand, DemandWindow, Replicas, Target, measure, target
from fish_operator.drain import first_to_drain
from fish_operator.spec import DeploymentSpec
from fish_operator.view import LIVE_STAGES, ClusterView, DeploymentView, PodStage, PodView


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """The engines of one deployment and what is to become of them."""

    deployment: DeploymentView
    spec: DeploymentSpec
    engines: tuple[PodView, ...]
    demand: Demand
    target: Target
    window: DemandWindow
    backoff: Backoff

    @property
    def live(self) -> tuple[PodView, ...]:
        """Engines that count as capacity, pending ones included."""
        return tuple(pod for pod in self.engines if pod.stage in LIVE_STAGES and not pod.is_draining)

    @property
    def leaving(self) -> tuple[PodView, ...]:
        """Engines that finish their streams."""
        return tuple(pod for pod in self.engines if _is_leaving(pod))

    @property
    def half_drained(self) -> tuple[PodView, ...]:
        """Engines that were marked as draining and not yet asked to go: a crash came between."""
        return tuple(pod for pod in self.engines if pod.is_draining and pod.stage in LIVE_STAGES)

    @property
    def missing(self) -> int:
        """Engines to create."""
        return max(0, self.target.replicas - len(self.live) - len(self.backoff.waiting))

    @property
    def held(self) -> int:
        """Places of failed engines whose successors must wait."""
        return min(len(self.backoff.waiting), max(0, self.target.replicas - len(self.live)))

    @property
    def ended_as_asked(self) -> tuple[PodView, ...]:
        """Engines that are done; nothing is left to learn from them."""
        return tuple(pod for pod in self.engines if pod.stage is PodStage.ENDED and not is_failed(pod))


def read_fleet(
    view: ClusterView,
    deployment: DeploymentView,
    spec: DeploymentSpec,
    engines: tuple[PodView, ...],
    window: DemandWindow,
) -> Fleet:
    """Read one deployment by its engines and decide how many there should be."""
    demand = measure(engines, view.loads)
    current = Replicas(
        live=sum(pod.stage in LIVE_STAGES and not pod.is_draining for pod in engines),
        draining=sum(map(_is_leaving, engines)),
        last_desired=deployment.status.desired_replicas,
    )
    decided, window = target(spec.scaling, demand=demand, current=current, window=window, at_s=view.monotonic_s)
    failed = [pod for pod in engines if is_failed(pod)]
    return Fleet(
        deployment=deployment,
        spec=spec,
        engines=engines,
        demand=demand,
        target=decided,
        window=window,
        backoff=backoff(failed, now_s=view.now_s),
    )


def _is_leaving(pod: PodView) -> bool:
    return pod.stage is PodStage.TERMINATING or (pod.is_draining and pod.stage in LIVE_STAGES)


def is_failed(pod: PodView) -> bool:
    """Tell whether an engine ended though nobody asked it to; it is meant to serve for ever."""
    return pod.end is not None and not (pod.end.was_deleted or pod.is_draining or pod.end.disruption)


def surplus(fleet: Fleet, view: ClusterView) -> PodView | None:
    """Return the engine that has to go now, if there is one too many."""
    if len(fleet.live) <= fleet.target.replicas:
        return None
    return first_to_drain(fleet.live, view.loads)


def free_names(prefix: str, pods: tuple[PodView, ...]) -> Iterator[str]:
    """Yield pod names that are not taken: the lowest numbers first, so that a repeated creation meets its own name."""
    taken = {pod.key.name for pod in pods}
    return (name for number in count() if (name := f"{prefix}-{number}") not in taken)
