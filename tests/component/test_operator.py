"""The operator as a pod with the chart's own rights, on a real control plane: only engines and workers are stand-ins."""

import json
import os
import signal
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fish_local.cluster import Cluster
from fish_local.shape import ImageCommand

ROOT = Path(__file__).parents[2]
STANDINS = Path(__file__).parent / "standins"
OPERATOR_NAMESPACE = "fish-system"
GPUS = 4

Json = dict[str, Any]


def script(name: str) -> ImageCommand:
    return ImageCommand(command=(sys.executable, str(STANDINS / name)))


@pytest.fixture(scope="module")
def operator(cluster: Cluster) -> Iterator[Cluster]:
    """Return a cluster with the chart in it, and images of the stand-ins."""
    python = ImageCommand(command=(sys.executable,))
    cluster.set_images({"test/python": python, "test/engine": script("engine.py"), "test/worker": script("worker.py")})
    chart = str(ROOT / "helm" / "fish-tts")
    cluster.helm("upgrade", "--install", "fish-tts", chart, "-n", OPERATOR_NAMESPACE, "--create-namespace", "--wait")
    yield cluster
    cluster.set_images({"test/python": python})


class Stage:
    """One TTSDeployment and one CleaningJob in a namespace of their own."""

    def __init__(
        self, cluster: Cluster, namespace: str, folder: Path, eventually: Callable[..., Any], loads: dict[str, int]
    ) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.folder = folder
        self.eventually = eventually
        self.say_loads(loads)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        return self.cluster.kubectl("-n", self.namespace, *arguments, stdin=stdin)

    def say_loads(self, loads: dict[str, int | None]) -> None:
        """Let engines report these streams from now on, by address; `*` is every other engine."""
        written = self.folder / "loads.new"
        written.write_text(json.dumps(loads))
        written.rename(self.folder / "loads.json")

    def serve(self, **autoscaling: object) -> None:
        spec = {
            "model": {"source": "file:///nowhere"},
            "engine": {"image": "test/engine:1", "args": ["--loads", str(self.folder / "loads.json")]},
            "autoscaling": {"max": GPUS, "streamsPerReplica": 4, "scaleDown": {"window": "3s"}} | autoscaling,
            "drain": {"streamTimeout": "5s"},
        }
        self._apply("TTSDeployment", "voice", spec)

    def clean(self, *, leave_after_s: float = 0.0, grace: str = "10s") -> None:
        spec = {
            "input": {"uri": "file:///nowhere"},
            "output": {"uri": self.folder.as_uri()},
            "pipeline": {"image": "test/worker:1", "args": ["--leave-after", str(leave_after_s)]},
            "workers": {"max": GPUS},
            "checkpoint": {"grace": grace},
        }
        self._apply("CleaningJob", "librivox", spec)

    def _apply(self, kind: str, name: str, spec: Json) -> None:
        manifest = {"apiVersion": "fish-tts.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        self.kubectl("apply", "-f", "-", stdin=json.dumps(manifest))

    def pods(self, work_class: str) -> list[Json]:
        return [pod for pod in self._all_pods() if pod["metadata"]["labels"]["fish-tts.io/class"] == work_class]

    def _all_pods(self) -> list[Json]:
        return json.loads(self.kubectl("get", "pods", "-l", "fish-tts.io/class", "-o", "json"))["items"]

    def running_workers(self) -> list[Json]:
        return [pod for pod in self.pods("cleaning") if is_running(pod)]

    def ready_engines(self) -> list[Json]:
        return [pod for pod in self.pods("inference") if is_running(pod) and is_ready(pod)]

    def status(self, kind: str) -> Json:
        name = {"tts": "voice", "clean": "librivox"}[kind]
        return json.loads(self.kubectl("get", kind, name, "-o", "json")).get("status", {})

    def evictions(self) -> int:
        return self.status("clean").get("evictions", {}).get("total", 0)

    def settle(self, *, engines: int, workers: int) -> None:
        """Wait until exactly these run, and nothing waits or leaves."""

        def is_settled() -> bool:
            held = [pod for pod in self._all_pods() if not ended(pod)]
            # A worker has no probes: it is ready as soon as it runs.
            settled = [
                pod["metadata"]["labels"]["fish-tts.io/class"] for pod in held if is_running(pod) and is_ready(pod)
            ]
            counts = (settled.count("inference"), settled.count("cleaning"), len(held))
            return counts == (engines, workers, engines + workers)

        self.eventually(is_settled, within_s=60)

    def first_engine_address(self) -> str:
        return self.ready_engines()[0]["status"]["podIP"]


def ended(pod: Json) -> bool:
    return pod["status"].get("phase") in {"Succeeded", "Failed"}


def is_running(pod: Json) -> bool:
    return pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]


def is_ready(pod: Json) -> bool:
    return condition(pod["status"], "Ready").get("status") == "True"


def condition(status: Json, kind: str) -> Json:
    return next((item for item in status.get("conditions", []) if item["type"] == kind), {})


@pytest.fixture
def stage(operator: Cluster, namespace: str, tmp_path: Path, eventually: Callable[..., Any]) -> Iterator[Stage]:
    made = Stage(operator, namespace, tmp_path, eventually, loads={"*": 0})
    yield made
    made.kubectl("delete", "tts,clean", "--all", "--wait=false")
    made.kubectl("delete", "pods", "--all", "--grace-period=0", "--force")


@pytest.fixture
def busy(stage: Stage) -> Stage:
    """Return a stage with one quiet engine and fill work on every other GPU."""
    stage.serve()
    stage.clean(leave_after_s=1.0)
    stage.settle(engines=1, workers=GPUS - 1)
    return stage


def operator_pod(cluster: Cluster) -> Json:
    found = cluster.kubectl("get", "pods", "-n", OPERATOR_NAMESPACE, "-o", "json")
    return next(pod for pod in json.loads(found)["items"] if is_running(pod))


def kill_operator(cluster: Cluster) -> None:
    """End the operator's processes like a crash would."""
    (container,) = operator_pod(cluster)["status"]["containerStatuses"]
    group = int(container["containerID"].removeprefix("process://").split("-")[0])
    os.killpg(group, signal.SIGKILL)


def metrics_page(cluster: Cluster) -> str:
    return _page(operator_pod(cluster)["status"]["podIP"])


def _page(address: str) -> str:
    with urllib.request.urlopen(f"http://{address}:9090/metrics", timeout=5) as answer:
        return answer.read().decode()


def metric(cluster: Cluster, name: str) -> float:
    return _value(metrics_page(cluster), name)


def _value(page: str, name: str) -> float:
    line = next(line for line in page.splitlines() if line.startswith(f"{name} "))
    return float(line.split()[1])


def test_fill_work_takes_every_gpu_that_no_engine_wants(stage: Stage):
    stage.clean()
    stage.settle(engines=0, workers=GPUS)
    status = stage.eventually(lambda: (now := stage.status("clean")).get("percent") == 40 and now)
    assert status["units"] == {"total": 100, "committed": 40}
    assert condition(status, "Running")["reason"] == "Working"


def test_each_engine_costs_one_worker_and_reports_how_its_gpu_came(busy: Stage):
    before = busy.evictions()
    busy.say_loads({busy.first_engine_address(): 12, "*": 0})
    busy.settle(engines=3, workers=1)
    assert busy.evictions() - before == 2
    status = busy.eventually(lambda: len((now := busy.status("tts")).get("reclaims", [])) == 2 and now)
    assert status["desiredReplicas"] == status["readyReplicas"] == 3
    assert status["decisions"][-1]["reason"] == "DemandRose"
    for reclaim in status["reclaims"]:
        assert reclaim["stages"]["free"] >= 1.0, "the worker takes a second to leave"
        assert sum(reclaim["stages"].values()) == pytest.approx(reclaim["totalSeconds"], abs=0.01)
    assert "fish_evictions_total{" in metrics_page(busy.cluster)
    busy.kubectl("wait", "--for=condition=Ready", "tts/voice", "--timeout=10s")


def test_a_gpu_goes_back_to_fill_work_when_speech_is_quiet_again(busy: Stage):
    busy.say_loads({busy.first_engine_address(): 8, "*": 0})
    busy.settle(engines=2, workers=2)
    busy.say_loads({"*": 0})
    busy.settle(engines=1, workers=3)
    reasons = [decision["reason"] for decision in busy.status("tts")["decisions"]]
    assert reasons == ["FirstSeen", "DemandRose", "DemandFell"]


def test_killing_the_operator_in_the_middle_of_a_reclaim_costs_no_second_worker_and_no_engine(busy: Stage):
    before = {pod["metadata"]["uid"] for pod in busy.running_workers()}
    busy.say_loads({busy.first_engine_address(): 8, "*": 0})
    busy.eventually(lambda: len(busy.running_workers()) < len(before))
    kill_operator(busy.cluster)
    busy.settle(engines=2, workers=2)
    after = {pod["metadata"]["uid"] for pod in busy.running_workers()}
    assert len(before - after) == 1
    assert after < before, "no worker was started and thrown away"


def test_engines_that_do_not_report_are_held_and_said_to_be_silent(busy: Stage):
    busy.say_loads({busy.first_engine_address(): 8, "*": 0})
    busy.settle(engines=2, workers=2)
    busy.say_loads({"*": None})
    silent = busy.eventually(
        lambda: condition(now := busy.status("tts"), "MetricsAvailable")["status"] == "False" and now
    )
    assert condition(silent, "MetricsAvailable")["reason"] == "Unreachable"
    ticks = metric(busy.cluster, "fish_load_read_failures_total")
    busy.eventually(lambda: metric(busy.cluster, "fish_load_read_failures_total") >= ticks + 10)  # well over the window
    assert len(busy.ready_engines()) == 2
    busy.say_loads({"*": 0})
    busy.settle(engines=1, workers=3)


def test_a_worker_that_does_not_leave_is_killed_at_its_grace_and_counts_as_forced(stage: Stage):
    stage.serve(min=1)
    stage.clean(leave_after_s=60.0, grace="1s")
    stage.settle(engines=1, workers=GPUS - 1)
    stage.say_loads({stage.first_engine_address(): 12, "*": 0})
    stage.settle(engines=3, workers=1)
    evictions = stage.eventually(lambda: (now := stage.status("clean")["evictions"])["total"] == 2 and now)
    assert (evictions["forced"], evictions["checkpointed"]) == (2, 0)


def test_an_outage_of_the_api_server_moves_nothing(busy: Stage):
    before = {pod["metadata"]["uid"] for pod in (*busy.running_workers(), *busy.ready_engines())}
    failures = metric(busy.cluster, "fish_operator_tick_failures_total")
    address = operator_pod(busy.cluster)["status"]["podIP"]
    busy.cluster.kill("kube-apiserver")
    busy.eventually(lambda: failing_rounds(address) >= failures + 3)
    busy.cluster.revive("kube-apiserver")
    busy.settle(engines=1, workers=GPUS - 1)
    assert {pod["metadata"]["uid"] for pod in (*busy.running_workers(), *busy.ready_engines())} == before
    busy.say_loads({busy.first_engine_address(): 8, "*": 0})
    busy.settle(engines=2, workers=2)


def failing_rounds(address: str) -> float:
    return _value(_page(address), "fish_operator_tick_failures_total")


def test_a_job_whose_worker_is_done_is_complete_and_gets_no_more_workers(stage: Stage):
    stage.clean()
    stage.settle(engines=0, workers=GPUS)
    (stage.folder / "done").touch()
    stage.kubectl("wait", "--for=condition=Complete", "clean/librivox", "--timeout=30s")
    stage.eventually(lambda: all(map(ended, stage.pods("cleaning"))))
    assert stage.status("clean")["percent"] == 100
    assert len(stage.pods("cleaning")) <= GPUS


def test_a_job_that_workers_refuse_fails_with_the_reason_at_hand(stage: Stage):
    (stage.folder / "refuse").touch()
    stage.clean()
    stage.kubectl("wait", "--for=condition=Failed", "clean/librivox", "--timeout=30s")
    assert "exit code 65" in condition(stage.status("clean"), "Failed")["message"]


def test_a_pod_that_the_api_server_refuses_is_explained_where_its_owner_is_looked_at(stage: Stage):
    stage.serve()
    stage.kubectl("patch", "tts", "voice", "--type=merge", "-p", '{"spec":{"priorityClassName":"absent","engine":{}}}')
    stage.kubectl("delete", "pods", "--all", "--grace-period=1")
    told = stage.eventually(
        lambda: (now := condition(stage.status("tts"), "CapacityAvailable"))["status"] == "False" and now
    )
    assert told["reason"] == "PodRefused"
    assert "no PriorityClass with name absent was found" in told["message"]


def test_a_fixed_number_of_engines_follows_kubectl_scale(stage: Stage):
    stage.serve()
    stage.kubectl("patch", "tts", "voice", "--type=merge", "-p", '{"spec":{"autoscaling":null,"replicas":1}}')
    stage.kubectl("scale", "tts/voice", "--replicas=2")
    stage.settle(engines=2, workers=0)


def test_deleting_a_deployment_takes_its_engines_along(stage: Stage):
    stage.serve()
    stage.settle(engines=1, workers=0)
    stage.kubectl("delete", "tts", "voice")
    stage.eventually(lambda: not stage.pods("inference"), within_s=60)
