"""What the demo reads from pods, metrics and examples."""

import pytest
import yaml

from fish_contracts.labels import WORK_CLASS
from fish_contracts.priority import WorkClass
from fish_local.demo.kube import Pod
from fish_local.demo.operator_metrics import OperatorCounters
from fish_local.demo.scene import example
from fish_local.demo.watcher import gpus_by_state

PAGE = """\
# TYPE fish_scale_decisions_total counter
fish_scale_decisions_total{direction="up"} 2.0
fish_scale_decisions_total{direction="down"} 3.0
# TYPE fish_evictions_total counter
fish_evictions_total{cause="operator",outcome="checkpointed"} 2.0
fish_evictions_total{cause="operator",outcome="forced"} 1.0
# TYPE fish_gpu_state_seconds_total counter
fish_gpu_state_seconds_total{state="serving"} 100.5
fish_gpu_state_seconds_total{state="fill"} 20.0
"""


def pod(work_class: WorkClass, *, phase: str = "Running", is_ready: bool = True, is_leaving: bool = False) -> Pod:
    return Pod(
        name="p",
        labels={WORK_CLASS: work_class},
        address="127.1.0.1",
        phase=phase,
        is_ready=is_ready,
        is_leaving=is_leaving,
    )


def test_counters_are_summed_over_labels_that_do_not_matter():
    counters = OperatorCounters.from_page(PAGE)
    assert (counters.scale_ups, counters.scale_downs, counters.evictions) == (2, 3, 3)
    assert counters.gpu_state_seconds == {"serving": 100.5, "fill": 20.0}


def test_an_earlier_run_is_taken_off():
    counters = OperatorCounters.from_page(PAGE)
    assert counters.since(counters) == OperatorCounters(
        scale_ups=0, scale_downs=0, evictions=0, gpu_state_seconds={"serving": 0, "fill": 0}
    )


@pytest.mark.parametrize(
    ("one", "state"),
    [
        (pod(WorkClass.INFERENCE), "serving"),
        (pod(WorkClass.INFERENCE, is_ready=False), "loading"),
        (pod(WorkClass.INFERENCE, is_leaving=True), "draining"),
        (pod(WorkClass.CLEANING), "fill"),
        (pod(WorkClass.CLEANING, is_leaving=True), "checkpointing"),
        (pod(WorkClass.CLEANING, phase="Failed", is_leaving=True), "free"),
    ],
)
def test_every_gpu_is_in_one_state(one, state):
    seen = gpus_by_state([one], total=1)
    assert {name: count for name, count in seen.items() if count} == {state: 1}


def test_an_example_changes_only_where_told():
    manifest = yaml.safe_load(example("clean.yaml", {"spec.input.uri": "file:///in"}))
    assert manifest["spec"]["input"]["uri"] == "file:///in"
    with pytest.raises(KeyError, match=r"nowhere"):
        example("clean.yaml", {"spec.nowhere.uri": "x"})
