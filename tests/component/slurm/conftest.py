"""A real Slurm with eight fake GPUs for the tests of this folder, and the words to drive it.

`FISH_SLURM_SCALE=full` runs the same tests with the repeats that the bars ask for, `FISH_SLURM_MODE=qos` with slurmdbd.
"""

import contextlib
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fish_slurm.batch_file import WorkerJob, batch_file
from fish_slurm.trial import cluster as trial

STAND_IN = Path(__file__).with_name("stand_in_worker.py")
STAND_IN_COMMAND = ("/usr/bin/python3", "-SE", str(STAND_IN))
_NAMES = itertools.count()
FIGURES: list[str] = []


class Site:
    """A trial cluster and what a team does on it: cleaning that fills it, training that arrives."""

    def __init__(self, cluster: trial.TrialCluster) -> None:
        self.cluster = cluster
        self.root = cluster.plan.root
        self.gpus = cluster.plan.nodes * cluster.plan.gpus_per_node
        self.name = f"demo-{next(_NAMES)}"
        """Of this test's cleaning job: what became of an earlier test's workers must not count."""
        self.events = self._file("events.log")
        self._numbers = itertools.count()

    def worker_job(self, slot: int, **changes: object) -> WorkerJob:
        """Describe a stand-in worker that logs to `events`."""
        settings = {
            "name": self.name,
            "slot": slot,
            "input": str(self.events),
            "output": str(self.root / "out"),
            "recipe": "any",
            "run_folder": str(self.root / "runs"),
            "cpus": 1,
            "worker": STAND_IN_COMMAND,
        }
        return WorkerJob(**(settings | changes))

    def submit_worker(self, slot: int, **changes: object) -> str:
        """Submit a worker's generated batch file and return the job's id."""
        job = self.worker_job(slot, **changes)
        (self.root / "runs" / job.name).mkdir(parents=True, exist_ok=True)
        script = self.root / "worker.sh"
        script.write_text(batch_file(job))
        return self.cluster.command("sbatch", "--parsable", str(script)).strip()

    def fill(self) -> None:
        """Fill every GPU with cleaning and return once all of it runs."""
        for slot in range(self.gpus):
            self.submit_worker(slot)
        self.until(lambda: self.cleaning_gpus() == self.gpus, "cleaning on every GPU")

    def refill(self) -> None:
        """Start requeued cleaning, as the filler does, and return once every GPU is cleaning.

        Not in the second of the requeue: slurmd would kill the job, "Job credential revoked".
        """
        delayed = {job: self._when_requeued_s(job) for job in self.jobs("PENDING", "clean")}

        def all_clean() -> bool:
            for job in [job for job, requeued_s in delayed.items() if time.time() >= requeued_s + 2]:
                self.cluster.command("scontrol", "update", f"jobid={job}", "StartTime=now")
                del delayed[job]
            return self.cleaning_gpus() == self.gpus

        self.until(all_clean, "cleaning on every GPU again")

    def _when_requeued_s(self, job: str) -> int:
        return int(self.cluster.command("env", "SLURM_TIME_FORMAT=%s", "squeue", "-h", "-j", job, "-o", "%V"))

    def jobs(self, state: str, partition: str) -> list[str]:
        """Return the ids of jobs in a state and a partition."""
        return self.cluster.command("squeue", "-h", "-t", state, "-p", partition, "-o", "%i").split()

    def starts_and_ends(self) -> list[tuple[float, str, str, str]]:
        """Return (time, start or end, job id, node/gpu) of the stand-in workers, in order."""
        rows = [line.split() for line in self.events.read_text().splitlines()]
        return sorted((float(row[0]), row[1], row[2], row[3]) for row in rows)

    def cleaning_gpus(self) -> int:
        """Count the GPUs on which a stand-in worker lives, by its own word."""
        alive: dict[str, int] = {}
        for _, event, _, gpu in self.starts_and_ends():
            alive[gpu] = alive.get(gpu, 0) + (1 if event == "start" else -1)
        return sum(alive.values())

    def srun_training(self, gpus: int, command: str = "date +%s.%N", nodes: int = 1) -> float:
        """Run training by srun and return the time of its first line."""
        request = [f"--gres=gpu:{gpus}", f"--nodes={nodes}"]
        said = self.cluster.command("srun", "--quiet", "-p", "train", *request, "sh", "-c", command)
        return float(said.split()[0])

    def sbatch_training(self, gpus: int, then: str = "true") -> tuple[str, Callable[[], float]]:
        """Submit training; return its job id and a function that waits for its first line and returns when that was."""
        output = self._file(f"training-{next(self._numbers)}.log")
        script = f"date +%s.%N; exec {then}"
        job = self.cluster.command(
            "sbatch", "--parsable", "-p", "train", f"--gres=gpu:{gpus}", "-o", str(output), "--wrap", script
        ).strip()

        def started_s() -> float:
            self.until(lambda: "\n" in output.read_text(), f"training {job}")
            return float(output.read_text().split()[0])

        return job, started_s

    def until(self, claim: Callable[[], bool], name: str, timeout_s: float = 60) -> None:
        """Wait for a claim about the cluster."""
        self.cluster.wait_until(claim, name, timeout_s=timeout_s)

    def _file(self, name: str) -> Path:
        path = self.root / name
        path.touch()
        path.chmod(0o666)
        return path


@pytest.fixture(scope="module")
def slurm(request: pytest.FixtureRequest) -> Iterator[trial.TrialCluster]:
    """A Slurm of the test module's own: `NODES`, `GPUS_PER_NODE` and `MODE` where the module says so."""
    mode = getattr(request.module, "MODE", os.environ.get("FISH_SLURM_MODE", "partition"))
    if reason := trial.missing_parts(mode):
        pytest.skip(reason)
    root = Path(tempfile.mkdtemp(prefix="fish-slurm-"))
    try:
        nodes, gpus = getattr(request.module, "NODES", 2), getattr(request.module, "GPUS_PER_NODE", 4)
        with trial.running(trial.plan_here(root, nodes=nodes, gpus_per_node=gpus, mode=mode)) as running:
            yield running
    finally:
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def site(slurm: trial.TrialCluster) -> Iterator[Site]:
    """An empty cluster before each test."""
    site = Site(slurm)
    site.events.write_text("")
    yield site
    slurm.cancel_all()


@pytest.fixture
def filling(site: Site) -> Callable[..., contextlib.AbstractContextManager["subprocess.Popen[bytes]"]]:
    """Run `fish-slurm fill` for the length of a `with` block, by default on a backlog of stand-in workers."""

    @contextlib.contextmanager
    def fill(
        max_workers: int, buffer: int = 4, metrics_port: int = 0, **changes: object
    ) -> Iterator["subprocess.Popen[bytes]"]:
        job = {
            "name": site.name,
            "input": str(site.events),
            "output": str(site.root / "out"),
            "recipe": "any",
            "cpus": 1,
        }
        worker = changes.pop("worker", STAND_IN_COMMAND)
        cleaning_jobs = [job | {"max_workers": max_workers} | changes]
        backlog = {"run_folder": str(site.root / "runs"), "worker": list(worker), "cleaning_jobs": cleaning_jobs}
        (site.root / "backlog.yaml").write_text(json.dumps(backlog))  # each JSON is YAML
        command = [sys.executable, "-m", "fish_slurm", "fill", str(site.root / "backlog.yaml")]
        options = ["--interval", "0.5", "--metrics-port", str(metrics_port), "--buffer", str(buffer)]
        filler = subprocess.Popen([*command, *options], env=site.cluster.environment)
        try:
            yield filler
        finally:
            filler.terminate()
            filler.wait(timeout=20)

    return fill


@pytest.fixture(scope="session")
def repeats() -> Callable[[int], int]:
    """Return how often to repeat what the bar asks `full` times: all of it in the soak, a twentieth (at least 3) otherwise."""
    whole = os.environ.get("FISH_SLURM_SCALE") == "full"
    return lambda full: full if whole else max(3, full // 20)


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Callable[[str, list[float]], float]:
    """Note latencies for the summary and return their 95th percentile."""

    def note(name: str, seconds: list[float]) -> float:
        p95 = (
            sorted(seconds)[min(len(seconds) - 1, round(0.95 * len(seconds)))]
            if len(seconds) < 20
            else (statistics.quantiles(seconds, n=20, method="inclusive")[-1])
        )
        FIGURES.append(
            f"{name}: n={len(seconds)} p50={statistics.median(seconds):.2f} p95={p95:.2f} max={max(seconds):.2f} s"
        )
        return p95

    return note


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what was measured."""
    for line in FIGURES:
        terminalreporter.write_line(f"slurm: {line}")
