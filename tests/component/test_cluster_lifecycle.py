"""Up and down through the command line, and every state in which a folder may be found."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fish_local import processes
from fish_local.cluster import Cluster
from fish_local.errors import NotRunning
from fish_local.shape import CONTROL_PLANE

READY_WITHIN_S = 60
"""Quiet machines need 5 s and the promise is 15; this bound holds with every core busy."""

DEAF_POD = """
apiVersion: v1
kind: Pod
metadata: {name: deaf}
spec:
  containers:
  - name: main
    image: test/python
    args: ["-u", "-c", "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up')\\nwhile True: signal.pause()"]
"""


class CommandLine:
    """The command `fish-local` with a state folder of its own."""

    def __init__(self, state_dir: Path) -> None:
        self.state_dir = state_dir

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "fish_local", *arguments, "--state", str(self.state_dir)]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)

    @property
    def cluster(self) -> Cluster:
        return Cluster.in_folder(self.state_dir)

    def processes(self) -> dict[str, dict[str, int]]:
        """Return the processes that are written down, by component."""
        record = self.state_dir / "cluster.json"
        return json.loads(record.read_text())["processes"] if record.exists() else {}


@pytest.fixture(scope="module")
def fish_local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """Return the command with a folder in which nothing runs yet; whatever runs at the end is stopped."""
    command = CommandLine(tmp_path_factory.mktemp("lifecycle"))
    yield command
    command("down")


@pytest.fixture
def running(fish_local: CommandLine) -> CommandLine:
    """Return the command with a cluster that is up as a whole, whatever the last test did to it."""
    images = fish_local.state_dir / "more-images.yaml"
    images.write_text(json.dumps({"images": {"test/python": {"command": [sys.executable]}}}))
    answer = fish_local("up", "--nodes", "1", "--gpus", "1", "--images", str(images))
    assert answer.returncode == 0, answer.stderr
    return fish_local


@pytest.fixture
def stopped(fish_local: CommandLine) -> CommandLine:
    """Return the command with a folder whose cluster is down."""
    answer = fish_local("down")
    assert answer.returncode == 0, answer.stderr
    return fish_local


def test_a_cluster_is_ready_in_time(stopped: CommandLine) -> None:
    answer = stopped("up", "--nodes", "1", "--gpus", "1")
    assert answer.returncode == 0, answer.stderr
    ready_s = float(answer.stdout.partition("ready after ")[2].partition(" s")[0])
    assert ready_s < READY_WITHIN_S


def test_a_started_cluster_says_what_it_consists_of(running: CommandLine) -> None:
    answer = running("status", "--json")
    assert answer.returncode == 0
    status = json.loads(answer.stdout)
    assert [component["name"] for component in status["components"]] == [*CONTROL_PLANE, "node-0"]
    assert all(component["is_ready"] for component in status["components"])
    assert status["nodes"] == [{"name": "node-0", "is_ready": True, "gpus": 1}]
    assert status["gpus"] == [{"id": "GPU-node-0-0", "node": "node-0", "pod": None, "work_class": None}]


def test_a_second_up_says_so_and_changes_nothing(running: CommandLine) -> None:
    before = running.processes()
    answer = running("up")
    assert answer.returncode == 0
    assert "already up (1 x 1 GPUs)" in answer.stdout
    assert running.processes() == before


def test_another_shape_is_refused_while_one_runs(running: CommandLine) -> None:
    answer = running("up", "--nodes", "2")
    assert answer.returncode == 1
    assert "stop it first with `fish-local down`" in answer.stderr


def test_a_dead_component_is_shown_and_started_again(running: CommandLine) -> None:
    assert running("faults", "kill", "kube-scheduler").returncode == 0
    status = json.loads(running("status", "--json").stdout)
    assert [component["name"] for component in status["components"] if not component["is_alive"]] == ["kube-scheduler"]
    answer = running("up")
    assert answer.returncode == 0
    assert "kube-scheduler had died" in answer.stdout
    assert running("status").returncode == 0


def test_an_unknown_component_is_answered_with_the_known_ones(running: CommandLine) -> None:
    answer = running("faults", "kill", "kube-skeduler")
    assert answer.returncode == 1
    assert "kube-scheduler" in answer.stderr


def test_down_leaves_nothing_running_not_even_a_deaf_pod(running: CommandLine) -> None:
    cluster = running.cluster
    cluster.kubectl("apply", "-f", "-", stdin=DEAF_POD)
    cluster.kubectl("wait", "--for=condition=Ready", "pod/deaf", "--timeout=60s")
    assert processes.marked(cluster.layout.root)
    assert running("down").returncode == 0
    assert processes.marked(cluster.layout.root) == []
    with pytest.raises(NotRunning, match="start one with `fish-local up`"):
        cluster.status()


def test_a_folder_from_before_a_restart_of_the_machine_is_explained(stopped: CommandLine) -> None:
    record = {
        "boot_id": "an earlier one",
        "is_complete": True,
        "shape": {"nodes": 1, "gpus_per_node": 1},
        "network": {"block": 16, "ports": {}},
        "binary": "/nowhere",
        "token": "",
        # By now this id belongs to somebody else, who must be left alone.
        "processes": {"etcd": {"pid": os.getpid(), "started_ticks": 1}},
    }
    (stopped.state_dir / "cluster.json").write_text(json.dumps(record))
    answer = stopped("up")
    assert answer.returncode == 0
    assert "the machine was restarted" in answer.stdout


def test_the_rest_of_killed_processes_is_explained_and_cleared_away(running: CommandLine) -> None:
    for process in processes.marked(running.state_dir):
        processes.kill(process, signal.SIGKILL)
        processes.wait_gone([process], timeout_s=5)
    assert "processes of its control plane were killed" in running("status").stderr
    answer = running("up")
    assert answer.returncode == 0
    assert "processes of its control plane were killed" in answer.stdout


def test_an_up_that_was_killed_half_way_is_explained_and_cleared_away(stopped: CommandLine) -> None:
    command = [sys.executable, "-m", "fish_local", "up", "--state", str(stopped.state_dir)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as starting:
        while not stopped.processes():
            assert starting.poll() is None
        starting.kill()
    answer = stopped("up", "--nodes", "1", "--gpus", "1")
    assert answer.returncode == 0
    assert "an `up` was stopped half-way" in answer.stdout
    components = {process.pid for process in processes.marked(stopped.state_dir)}
    assert components == {process["pid"] for process in stopped.processes().values()}


def test_down_on_a_folder_without_a_cluster_says_that_there_is_nothing_to_stop(tmp_path: Path) -> None:
    stopped = CommandLine(tmp_path)("down")
    assert stopped.returncode == 0
    assert "no cluster was ever started" in stopped.stderr + stopped.stdout


def test_a_file_in_place_of_the_folder_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    refused = CommandLine(tmp_path / "state")("up")
    assert refused.returncode == 1
    assert "is not a folder" in refused.stderr
