"""Series say what happened, and GPU-seconds add up."""

import pytest

from fish_contracts import metrics
from fish_operator.plan import GpuState, Plan, ScaleDecided, WorkerEnded, WriteDeploymentStatus
from fish_operator.status import DeploymentStatus, Load
from fish_operator.telemetry import Telemetry


def value(telemetry: Telemetry, name: str, **labels: str) -> float | None:
    return telemetry.registry.get_sample_value(name, labels)


def test_gpu_seconds_are_charged_to_the_state_that_was_seen_and_add_up():
    telemetry = Telemetry()
    telemetry.record(Plan(gpu_states={GpuState.FREE: 4}), monotonic_s=100.0)
    telemetry.record(Plan(gpu_states={GpuState.FREE: 1, GpuState.FILL: 3}), monotonic_s=101.0)
    telemetry.record(Plan(gpu_states={GpuState.FILL: 4}), monotonic_s=103.0)
    seconds = {state: value(telemetry, metrics.GPU_STATE_SECONDS.name, state=state) for state in GpuState}
    assert (seconds[GpuState.FREE], seconds[GpuState.FILL]) == (6.0, 6.0)
    assert sum(filter(None, seconds.values())) == 4 * 3.0


def test_every_state_is_there_from_the_start():
    page = Telemetry().page().decode()
    for state in GpuState:
        assert f'fish_gpu_state_seconds_total{{state="{state}"}} 0.0' in page


@pytest.mark.parametrize(("before", "after", "direction"), [(1, 4, "up"), (4, 3, "down")])
def test_decisions_are_counted_by_direction(make, before: int, after: int, direction: str):
    telemetry = Telemetry()
    event = ScaleDecided(owner=make.key("voice"), before=before, after=after, reason="DemandRose", message="")
    telemetry.record(Plan(events=(event,)), monotonic_s=0.0)
    assert value(telemetry, metrics.SCALE_DECISIONS.name, direction=direction) == 1.0


def test_only_workers_that_were_made_to_stop_count_as_evictions(make):
    telemetry = Telemetry()
    pod = make.ended(make.worker(), 75)
    telemetry.record(
        Plan(
            events=(
                WorkerEnded(pod=pod, outcome="checkpointed", cause="operator"),
                WorkerEnded(pod=pod, outcome="complete", cause="itself"),
            )
        ),
        monotonic_s=0.0,
    )
    assert value(telemetry, metrics.EVICTIONS.name, cause="operator", outcome="checkpointed") == 1.0
    assert value(telemetry, metrics.EVICTIONS.name, cause="itself", outcome="complete") is None


def test_a_deleted_deployment_leaves_no_series_behind(make):
    telemetry = Telemetry()
    status = DeploymentStatus(load=Load(streams=3, queued=1), ready_replicas=2)
    write = WriteDeploymentStatus(key=make.key("voice"), status=status, before=DeploymentStatus())
    labels = {"namespace": "default", "deployment": "voice"}
    telemetry.record(Plan(statuses=(write,)), monotonic_s=0.0)
    assert value(telemetry, metrics.STREAMS_ACTIVE.name, **labels) == 3.0
    assert value(telemetry, metrics.REPLICAS.name, **labels, state="ready") == 2.0
    telemetry.record(Plan(), monotonic_s=1.0)
    assert value(telemetry, metrics.STREAMS_ACTIVE.name, **labels) is None
