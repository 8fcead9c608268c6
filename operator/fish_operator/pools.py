"""Who holds which GPUs: the pools that placing draws from, and the state of every GPU. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from fish_contracts.priority import Holder, WorkClass
from fish_operator.plan import GpuState
from fish_operator.victims import NodePool
from fish_operator.view import ClusterView, NodeView, PodStage, PodView

_ENGINE_STATES: Final = {
    PodStage.STARTING: GpuState.LOADING,
    PodStage.READY: GpuState.SERVING,
    PodStage.UNREADY: GpuState.SERVING,
    PodStage.TERMINATING: GpuState.DRAINING,
}
_WORKER_STATES: Final = {
    PodStage.STARTING: GpuState.LOADING,
    PodStage.READY: GpuState.FILL,
    PodStage.TERMINATING: GpuState.CHECKPOINTING,
}


def node_pools(view: ClusterView) -> tuple[NodePool, ...]:
    """Return the GPUs of the nodes that take new pods."""
    holding = _holding_by_node(view.pods)
    return tuple(_pool(node, holding[node.name], view) for node in view.nodes if node.is_schedulable)


def _holding_by_node(pods: Iterable[PodView]) -> defaultdict[str, list[PodView]]:
    holding: defaultdict[str, list[PodView]] = defaultdict(list)
    for pod in pods:
        if pod.node and pod.gpus and pod.stage is not PodStage.ENDED:
            holding[pod.node].append(pod)
    return holding


def _pool(node: NodeView, pods: Sequence[PodView], view: ClusterView) -> NodePool:
    workers = [pod for pod in pods if pod.work_class is WorkClass.CLEANING]
    return NodePool(
        name=node.name,
        free=max(0, node.gpus - sum(pod.gpus for pod in pods)),
        coming=sum(pod.gpus for pod in workers if pod.stage is PodStage.TERMINATING),
        holders=tuple(_holder(pod, view) for pod in workers if pod.stage is not PodStage.TERMINATING),
    )


def _holder(pod: PodView, view: ClusterView) -> Holder:
    started_at_s = pod.started_at_s if pod.started_at_s is not None else pod.created_at_s
    report = view.progress.get(pod.uid)
    return Holder(
        name=pod.uid,
        work_class=WorkClass.CLEANING,
        gpus=pod.gpus,
        started_at_s=started_at_s,
        work_at_risk_s=report.work_at_risk_s if report else max(0.0, view.now_s - started_at_s),
    )


def gpu_states(view: ClusterView) -> dict[GpuState, int]:
    """Return how many GPUs are in each state; they add up to all GPUs of all nodes."""
    states: Counter[GpuState] = Counter(dict.fromkeys(GpuState, 0))
    holding = _holding_by_node(view.pods)
    for node in view.nodes:
        held: Counter[GpuState] = Counter()
        for pod in holding[node.name] if node.gpus else ():
            held[_state(pod)] += pod.gpus
        states.update(held)
        states[GpuState.FREE] += max(0, node.gpus - held.total())
        # A pod whose GPU broke under it still holds it.
        states[GpuState.UNHEALTHY] += node.unhealthy_gpus - max(0, held.total() - node.gpus)
    return dict(states)


def _state(pod: PodView) -> GpuState:
    match pod.work_class:
        case WorkClass.INFERENCE:
            return _ENGINE_STATES.get(pod.stage, GpuState.LOADING)
        case WorkClass.CLEANING:
            return _WORKER_STATES.get(pod.stage, GpuState.LOADING)
        case _:
            return GpuState.OTHER
