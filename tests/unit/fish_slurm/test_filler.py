"""The filler's round: what it does with refusals, and how it slows down."""

import threading

import pytest
from prometheus_client import CollectorRegistry

from fish_slurm.backlog import read_backlog
from fish_slurm.errors import BadSetting, SlurmFailed
from fish_slurm.filler import Filler, only_filler
from fish_slurm.telemetry import Telemetry
from fish_slurm.view import Job, Node


class Cluster:
    """A cluster in memory: one node of four GPUs. `refuses` are the calls that fail."""

    def __init__(self, job: Job, refuses: set[str]) -> None:
        self.queue = [job]
        self.refuses = refuses
        self.calls: list[tuple[str, object]] = []

    def jobs(self) -> tuple[Job, ...]:
        self._call("jobs", None)
        return tuple(self.queue)

    def nodes(self) -> tuple[Node, ...]:
        return (Node(name="n1", gpus=4, used_gpus=0, takes_work=True, reason=""),)

    def submit(self, script: str) -> int:
        self._call("submit", script)
        return 99

    def start_now(self, job_id: int) -> None:
        self._call("start_now", job_id)

    def hold(self, job_id: int) -> None:
        self._call("hold", job_id)

    def cancel_pending(self, job_id: int) -> None:
        self._call("cancel_pending", job_id)

    def _call(self, name: str, argument: object) -> None:
        self.calls.append((name, argument))
        if name in self.refuses:
            raise SlurmFailed(f"{name} refused")


@pytest.fixture
def filler_on(tmp_path, cleaning, limits):
    """Build a filler for a cluster that has one requeued worker in its queue and refuses some calls."""

    def build(*refuses: str) -> tuple[Filler, Cluster]:
        backlog = tmp_path / "backlog.yaml"
        backlog.write_text(
            f"run_folder: {tmp_path}/runs\ncleaning_jobs:\n"
            "  - {name: demo, input: /in, output: /out, recipe: quick, max_workers: 3}\n"
        )
        cluster = Cluster(cleaning(1, reason="BeginTime", restarts=1), set(refuses))
        telemetry = Telemetry(CollectorRegistry(), limits())
        return Filler(backend=cluster, backlog=read_backlog(backlog), limits=limits(), telemetry=telemetry), cluster

    return build


def test_a_round_starts_what_waits_and_submits_what_is_missing(filler_on):
    filler, cluster = filler_on()
    filler.tick()
    assert [name for name, _ in cluster.calls] == ["jobs", "start_now", "submit", "submit"]
    assert "slot=1" in cluster.calls[2][1]


def test_a_change_that_comes_too_late_does_not_end_the_round(filler_on):
    filler, cluster = filler_on("start_now")
    filler.tick()
    assert [name for name, _ in cluster.calls] == ["jobs", "start_now", "submit", "submit"]


def test_a_refused_worker_ends_the_round(filler_on):
    filler, cluster = filler_on("submit")
    with pytest.raises(SlurmFailed):
        filler.tick()
    assert [name for name, _ in cluster.calls] == ["jobs", "start_now", "submit"]


def test_a_slurm_that_does_not_answer_is_asked_less_and_less_often(filler_on):
    filler, cluster = filler_on("jobs")
    pauses: list[float] = []

    class Clock(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            pauses.append(timeout or 0)
            return len(pauses) > 7

    filler.run(Clock(), interval_s=1.0)
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]
    cluster.refuses.clear()
    pauses.clear()
    filler.run(Clock(), interval_s=1.0)
    assert set(pauses) == {1.0}


def test_jobs_that_ended_while_no_filler_ran_are_learnt_from_their_summaries(filler_on, tmp_path):
    (tmp_path / "runs/demo").mkdir(parents=True)
    (tmp_path / "runs/demo/5.0.json").write_text('{"outcome": "complete", "items_committed": 1, "items_rejected": 0}')
    filler, cluster = filler_on()
    assert filler.tick().stopped == {"demo": "complete"}
    assert cluster.calls == [("jobs", None), ("cancel_pending", 1)]


def test_a_run_folder_has_one_filler(tmp_path, monkeypatch):
    monkeypatch.setattr("fish_slurm.filler._PATIENCE_S", 0.0)
    with (
        only_filler(tmp_path),
        pytest.raises(BadSetting, match="one run folder has one filler"),
        only_filler(tmp_path),
    ):
        pass
    with only_filler(tmp_path):
        pass


def test_a_run_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(BadSetting, match="file/runs: Not a directory"), only_filler(tmp_path / "file/runs"):
        pass
