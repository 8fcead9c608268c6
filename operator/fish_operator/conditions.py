"""What is true about a custom resource, in the form that `kubectl wait --for=condition=…` understands. Pure.

Every reason is a constant; a message says the numbers.
"""

from collections.abc import Sequence
from typing import Literal

from fish_operator.fill import Crew
from fish_operator.fleet import Fleet
from fish_operator.spec import AutoScaling, SpecProblem
from fish_operator.status import Condition
from fish_operator.victims import Coming, Evict, NoRoom, Placement
from fish_operator.view import PodStage, PodView


def _condition(kind: str, holds: bool | None, reason: str, message: str) -> Condition:
    status: Literal["True", "False", "Unknown"] = "Unknown" if holds is None else "True" if holds else "False"
    return Condition(type=kind, status=status, reason=reason, message=message)


def refused_spec(problem: SpecProblem) -> tuple[Condition, ...]:
    """Say why a spec cannot be used; everything that runs goes on as it was."""
    return (_condition("Ready", False, "InvalidSpec", problem.message),)


def deployment_conditions(
    fleet: Fleet, placements: tuple[Placement, ...], refusal: str | None
) -> tuple[Condition, ...]:
    """Return the conditions of a TTSDeployment; `placements` are those of its engines without a GPU."""
    return (_ready(fleet), _metrics(fleet), _capacity(fleet, placements, refusal), _limits(fleet))


def _ready(fleet: Fleet) -> Condition:
    ready = sum(pod.stage is PodStage.READY for pod in fleet.live)
    needed = fleet.spec.scaling.min_replicas if isinstance(fleet.spec.scaling, AutoScaling) else fleet.target.replicas
    message = f"{ready} of {fleet.target.replicas} engines are ready, at least {needed} must be{_obstacles(fleet.live)}"
    return _condition("Ready", ready >= needed, "EnoughEngines" if ready >= needed else "TooFewEngines", message)


def _metrics(fleet: Fleet) -> Condition:
    demand = fleet.demand
    if demand.asked == 0:
        return _condition("MetricsAvailable", None, "NoReadyEngine", "there is no engine to ask yet")
    if demand.is_complete:
        return _condition("MetricsAvailable", True, "Found", "every engine reports its load")
    message = f"{demand.unread} of {demand.asked} engines do not report their load: replicas are held"
    reason = "Unreachable" if demand.unread == demand.asked else "Partial"
    return _condition("MetricsAvailable", False, reason, message)


def _capacity(fleet: Fleet, placements: tuple[Placement, ...], refusal: str | None) -> Condition:
    if refusal:
        return _condition("CapacityAvailable", False, "PodRefused", refusal)
    if fleet.backoff.waiting:
        return _condition("CapacityAvailable", False, "BackOff", _failures(fleet.backoff.waiting))
    without = sum(isinstance(placement, NoRoom) for placement in placements)
    if without:
        message = f"{without} engines of {fleet.spec.pod.gpus} GPU fit on no node, even without fill work"
        return _condition("CapacityAvailable", False, "Insufficient", message)
    waiting = sum(isinstance(placement, Coming | Evict) for placement in placements)
    if waiting:
        return _condition("CapacityAvailable", True, "Reclaiming", "fill work is making room")
    return _condition("CapacityAvailable", True, "Free", "every engine has its GPU")


def _limits(fleet: Fleet) -> Condition:
    scaling, replicas = fleet.spec.scaling, fleet.target.replicas
    if not isinstance(scaling, AutoScaling):
        return _condition("ScalingLimited", False, "Manual", "the number of replicas is fixed")
    if fleet.demand.streams > scaling.max_replicas * scaling.streams_per_replica:
        message = f"{fleet.demand.streams} streams want more than max = {scaling.max_replicas} replicas"
        return _condition("ScalingLimited", True, "AtMax", message)
    return _condition("ScalingLimited", False, "Within", f"{replicas} replicas are within the limits")


def job_conditions(crew: Crew, refusal: str | None) -> tuple[Condition, ...]:
    """Return the conditions of a CleaningJob."""
    return (_running(crew, refusal), _complete(crew), _failed(crew))


def _running(crew: Crew, refusal: str | None) -> Condition:
    if any(pod.stage is PodStage.READY for pod in crew.live):
        return _condition("Running", True, "Working", "workers are on their way through the input")
    causes = (
        (crew.is_complete, "Complete", "nothing is left to do"),
        (crew.is_failed, "Failed", "no more workers until the spec changes"),
        (bool(crew.backoff.waiting), "BackOff", _failures(crew.backoff.waiting)),
        (refusal is not None, "PodRefused", refusal or ""),
        (bool(crew.live), "Starting", f"workers are starting{_obstacles(crew.live)}"),
        (True, "NoFreeGpu", "every GPU is wanted for something that comes first"),
    )
    reason, message = next((reason, message) for holds, reason, message in causes if holds)
    return _condition("Running", False, reason, message)


def _complete(crew: Crew) -> Condition:
    if crew.is_complete:
        return _condition("Complete", True, "AllCommitted", "every unit is committed")
    return _condition("Complete", False, "UnitsLeft", "work is left")


def _failed(crew: Crew) -> Condition:
    if not crew.is_failed:
        return _condition("Failed", False, "NoFailure", "no worker says that starting again cannot help")
    before = next((item for item in crew.job.status.conditions if item.type == "Failed"), None)
    end = crew.hopeless
    if end is None:
        return before or _condition("Failed", True, "WorkerRefused", "a worker refused the spec")
    advice = f"starting again cannot help; see kubectl logs {end.pod.key.name}"
    return _condition("Failed", True, "WorkerRefused", f"{_failure(end.pod)}: {advice}")


def _obstacles(pods: Sequence[PodView]) -> str:
    obstacles = [f"{pod.key.name} waits: {pod.waiting}" for pod in pods if pod.waiting]
    return "".join(f"; {obstacle}" for obstacle in obstacles)


def _failures(pods: Sequence[PodView]) -> str:
    return f"failed and waiting for another try: {'; '.join(map(_failure, pods))}"


def _failure(pod: PodView) -> str:
    assert pod.end is not None
    how = pod.end.reason if pod.end.exit_code is None else f"exit code {pod.end.exit_code}"
    words = f": {pod.end.message}" if pod.end.message else ""
    return f"{pod.key.name} ended with {how}{words}"
