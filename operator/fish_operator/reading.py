"""JSON from the API server → records: the stage of a pod, the offer of a node, how something ended. Pure."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from fish_contracts.labels import DRAINING, GPU_RESOURCE, OWNER, WORK_CLASS
from fish_contracts.priority import WorkClass
from fish_operator.errors import InvalidSpecError
from fish_operator.notes import FAILURES, RECLAIM, read_note
from fish_operator.spec import DeploymentSpec, JobSpec, SpecProblem
from fish_operator.spec_edge import read_deployment_spec, read_job_spec
from fish_operator.status import DeploymentStatus, JobStatus
from fish_operator.status_json import read_status
from fish_operator.view import DeploymentView, JobView, NodeView, ObjectKey, PodEnd, PodStage, PodView
from fish_operator.wire import Condition, Container, CustomOnWire, NodeOnWire, PodOnWire, whole_number

LONGEST_MESSAGE: Final = 300
_TERMINAL_PHASES: Final = frozenset({"Succeeded", "Failed"})
_BLOCKING_EFFECTS: Final = frozenset({"NoSchedule", "NoExecute"})


def node_view(node: NodeOnWire) -> NodeView:
    """Return what a node offers; a node that is not Ready offers nothing and its GPUs count as unhealthy."""
    capacity = whole_number(node.status.capacity.get(GPU_RESOURCE, "0"))
    is_ready = any(item.type == "Ready" and item.status == "True" for item in node.status.conditions)
    gpus = whole_number(node.status.allocatable.get(GPU_RESOURCE, "0")) if is_ready else 0
    is_tainted = any(taint.effect in _BLOCKING_EFFECTS and taint.key != GPU_RESOURCE for taint in node.spec.taints)
    return NodeView(
        name=node.metadata.name,
        gpus=gpus,
        unhealthy_gpus=max(0, capacity - gpus),
        is_ready=is_ready,
        is_schedulable=is_ready and not node.spec.unschedulable and not is_tainted,
    )


def pods_on_gpus(pods: Iterable[PodOnWire], nodes: Sequence[NodeView]) -> tuple[PodView, ...]:
    """Return the pods that hold or want GPUs; those on a node that is not Ready are lost until it comes back."""
    silent = {node.name for node in nodes if not node.is_ready}
    views = (view for pod in pods if (view := pod_view(pod)).gpus)
    return tuple(replace(view, stage=PodStage.LOST) if _is_lost(view, silent) else view for view in views)


def _is_lost(pod: PodView, silent: set[str]) -> bool:
    return pod.node in silent and pod.stage is not PodStage.ENDED


def pod_view(pod: PodOnWire) -> PodView:
    """Return one pod as deciding sees it."""
    labels, annotations = pod.metadata.labels, pod.metadata.annotations
    work_class = next((item for item in WorkClass if item.value == labels.get(WORK_CLASS)), None)
    owner = labels.get(OWNER)
    ready, scheduled = _condition(pod, "Ready"), _condition(pod, "PodScheduled")
    return PodView(
        key=pod.metadata.key,
        uid=pod.metadata.uid,
        work_class=work_class if owner else None,
        owner=ObjectKey(namespace=pod.metadata.namespace, name=owner) if owner and work_class else None,
        node=pod.spec.node_name,
        ip=pod.status.pod_ip,
        gpus=_gpus_of_pod(pod),
        stage=_stage(pod, work_class),
        is_draining=DRAINING in labels,
        created_at_s=pod.metadata.creation_timestamp,
        scheduled_at_s=scheduled.last_transition_time if scheduled else None,
        started_at_s=_started_at_s(pod),
        ready_at_s=ready.last_transition_time if ready and ready.status == "True" else None,
        waiting=_waiting(pod),
        failures=_count(annotations.get(FAILURES, "")),
        note=read_note(annotations.get(RECLAIM)),
        end=_end(pod),
    )


def _condition(pod: PodOnWire, kind: str) -> Condition | None:
    return next((item for item in pod.status.conditions if item.type == kind), None)


def _count(text: str) -> int:
    """Return a number that we wrote; one that somebody has edited into nonsense must not stop the operator."""
    return int(text) if text.isascii() and text.isdecimal() else 0


def _gpus_of_pod(pod: PodOnWire) -> int:
    """Return what the scheduler counts: containers run together, init containers one by one before them."""
    together = sum(map(_gpus, pod.spec.containers))
    return max([together, *map(_gpus, pod.spec.init_containers)])


def _gpus(container: Container) -> int:
    # For extended resources Kubernetes wants request and limit to be equal; either may be left out.
    amounts = container.resources.requests.get(GPU_RESOURCE) or container.resources.limits.get(GPU_RESOURCE) or "0"
    return whole_number(amounts)


def _stage(pod: PodOnWire, work_class: WorkClass | None) -> PodStage:
    if pod.status.phase in _TERMINAL_PHASES:
        return PodStage.ENDED
    if pod.metadata.deletion_timestamp is not None:
        return PodStage.TERMINATING
    if pod.spec.node_name is None:
        return PodStage.UNSCHEDULED
    if not any(item.state.running for item in pod.status.container_statuses):
        return PodStage.STARTING
    if work_class is not WorkClass.INFERENCE:
        return PodStage.READY
    return _serving_stage(pod)


def _serving_stage(pod: PodOnWire) -> PodStage:
    ready = _condition(pod, "Ready")
    if ready and ready.status == "True":
        return PodStage.READY
    # The startup probe asks the same question as readiness: who has passed it was able to serve.
    has_served = any(item.started for item in pod.status.container_statuses)
    return PodStage.UNREADY if has_served else PodStage.STARTING


def _started_at_s(pod: PodOnWire) -> float | None:
    states = [item.state for item in pod.status.container_statuses]
    times = [part.started_at for state in states for part in (state.running, state.terminated) if part]
    return min((time for time in times if time is not None), default=None)


def _waiting(pod: PodOnWire) -> str:
    reasons = (item.state.waiting for item in pod.status.container_statuses if item.state.waiting)
    return "; ".join(f"{one.reason}: {one.message}" if one.message else one.reason for one in reasons)[:LONGEST_MESSAGE]


def _end(pod: PodOnWire) -> PodEnd | None:
    if pod.status.phase not in _TERMINAL_PHASES:
        return None
    ends = [item.state.terminated for item in pod.status.container_statuses if item.state.terminated]
    disruption = _condition(pod, "DisruptionTarget")
    return PodEnd(
        exit_code=max((end.exit_code for end in ends), default=None),
        finished_at_s=max((end.finished_at or 0.0 for end in ends), default=0.0) or pod.metadata.creation_timestamp,
        reason=pod.status.reason or next((end.reason for end in ends), ""),
        message=_last_words(next((end.message for end in ends), "")),
        was_deleted=pod.metadata.deletion_timestamp is not None,
        disruption=disruption.reason if disruption and disruption.status == "True" else "",
    )


def _last_words(text: str) -> str:
    """Return one line for people: the `error` of a JSON summary, else the last line."""
    lines = text.strip().splitlines()
    if not lines:
        return ""
    try:
        summary = json.loads(lines[-1])
    except ValueError:
        return lines[-1][:LONGEST_MESSAGE]
    error = summary.get("error") if isinstance(summary, dict) else None
    return str(error or "")[:LONGEST_MESSAGE]


def deployment_view(custom: CustomOnWire) -> DeploymentView:
    """Return a TTSDeployment; a spec that cannot be used becomes a `SpecProblem`."""
    spec: DeploymentSpec | SpecProblem
    try:
        spec = read_deployment_spec(custom.spec)
    except InvalidSpecError as error:
        spec = SpecProblem(message=str(error))
    return DeploymentView(
        key=custom.metadata.key,
        uid=custom.metadata.uid,
        generation=custom.metadata.generation,
        created_at_s=custom.metadata.creation_timestamp,
        spec=spec,
        status=read_status(DeploymentStatus, custom.status),
    )


def job_view(custom: CustomOnWire) -> JobView:
    """Return a CleaningJob; a spec that cannot be used becomes a `SpecProblem`."""
    spec: JobSpec | SpecProblem
    try:
        spec = read_job_spec(custom.spec)
    except InvalidSpecError as error:
        spec = SpecProblem(message=str(error))
    return JobView(
        key=custom.metadata.key,
        uid=custom.metadata.uid,
        generation=custom.metadata.generation,
        created_at_s=custom.metadata.creation_timestamp,
        spec=spec,
        status=read_status(JobStatus, custom.status),
    )


def departed_view(pod: PodOnWire, *, is_deleted: bool, now_s: float) -> PodView | None:
    """Return an ended pod from a watch event, None while it has not ended.

    A pod that vanishes without a terminal phase, by a forced deletion or with its node, ended too: nobody knows how.
    """
    view = pod_view(pod)
    if view.end is not None:
        return view
    if not is_deleted or view.node is None:
        return None
    end = PodEnd(exit_code=None, finished_at_s=now_s, reason="Vanished", message="", was_deleted=True, disruption="")
    return replace(view, stage=PodStage.ENDED, end=end)
