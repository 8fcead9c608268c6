import json
from pathlib import Path

import pytest

from fish_local.fault_commands import described
from fish_local.node_files import (
    GpuView,
    NodeFaults,
    PodProcesses,
    SlowExit,
    gpu_holders,
    pod_processes,
    read_faults,
    write_faults,
)

REPORT = {
    "node": "node-0",
    "gpus": [
        {"id": "GPU-node-0-0", "pod": "default/engine", "class": "inference"},
        {"id": "GPU-node-0-1", "pod": None, "class": None},
    ],
    "pods": [
        {
            "pod": "default/engine",
            "uid": "u1",
            "address": "127.16.10.1",
            "phase": "Running",
            "containers": [{"name": "engine", "process_group": 4711}, {"name": "ended", "process_group": 0}],
        },
        {"pod": "default/over", "uid": "u2", "address": "127.16.10.2", "phase": "Failed", "containers": []},
    ],
}
ALL_FAULTS = NodeFaults(
    lost_heartbeat=True,
    never_start=("default/a",),
    ignore_sigterm=("default/b",),
    slow_exit=(SlowExit(pod="default/c", delay_s=2.5),),
)


@pytest.fixture
def node_dir(tmp_path: Path) -> Path:
    (tmp_path / "status.json").write_text(json.dumps(REPORT))
    return tmp_path


def test_each_gpu_is_told_with_its_holder(node_dir: Path) -> None:
    assert gpu_holders(node_dir) == [
        GpuView(id="GPU-node-0-0", node="node-0", pod="default/engine", work_class="inference"),
        GpuView(id="GPU-node-0-1", node="node-0", pod=None, work_class=None),
    ]


def test_only_pods_of_which_something_runs_have_processes(node_dir: Path) -> None:
    assert pod_processes(node_dir) == [PodProcesses(pod="default/engine", groups=(4711,))]


def test_a_node_that_has_not_reported_yet_has_nothing_to_tell(tmp_path: Path) -> None:
    assert gpu_holders(tmp_path) == []
    assert pod_processes(tmp_path) == []


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ("default/engine", True),
        ("default/eng*", True),
        ("*/engine", True),
        ("default/eng", False),
        ("*", False),
        ("kube-system/engine", False),
    ],
)
def test_a_pattern_fits_a_pod_by_namespace_and_name(pattern: str, fits: bool) -> None:
    assert PodProcesses(pod="default/engine", groups=(1,)).matches(pattern) is fits


def test_a_node_without_faults_has_none(tmp_path: Path) -> None:
    assert read_faults(tmp_path) == NodeFaults()


def test_faults_read_back_as_they_were_written(tmp_path: Path) -> None:
    write_faults(tmp_path, ALL_FAULTS)
    assert read_faults(tmp_path) == ALL_FAULTS


def test_the_node_reads_faults_under_these_names(tmp_path: Path) -> None:
    write_faults(tmp_path, ALL_FAULTS)
    assert json.loads((tmp_path / "faults.json").read_text()) == {
        "lost_heartbeat": True,
        "never_start": ["default/a"],
        "ignore_sigterm": ["default/b"],
        "slow_exit": [{"pod": "default/c", "delay_s": 2.5}],
    }


def test_a_fault_is_added_to_those_that_are_on() -> None:
    both = NodeFaults(never_start=("a/b",)).and_also(NodeFaults(never_start=("a/b", "c/d"), lost_heartbeat=True))
    assert both == NodeFaults(never_start=("a/b", "c/d"), lost_heartbeat=True)


def test_the_latest_delay_of_a_pod_comes_first() -> None:
    early = NodeFaults(slow_exit=(SlowExit(pod="a/b", delay_s=1),))
    late = NodeFaults(slow_exit=(SlowExit(pod="a/b", delay_s=9),))
    assert early.and_also(late).slow_exit[0].delay_s == 9


def test_every_fault_has_words() -> None:
    assert described(ALL_FAULTS) == [
        "lost heartbeat",
        "never start default/a",
        "ignore SIGTERM of default/b",
        "slow exit of default/c by 2.5 s",
    ]
    assert described(NodeFaults()) == []
