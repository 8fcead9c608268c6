"""Workers as real processes on one output, killed, told to stop and frozen at random instants: nothing lost, nothing doubled."""

import functools
import json
import os
import random
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from fish_contracts.reports import ProgressReport

SPEECH = Path(__file__).parents[1] / "data" / "librivox"
PREEMPTED = 75
LEASE_TTL_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFolders:
    source: Path
    output: Path

    def command(self, name: str, *options: str) -> list[str]:
        folders = ["--input", str(self.source), "--output", str(self.output)]
        return [sys.executable, "-m", "fish_cleaning", name, *folders, *options]

    def start_worker(self, *options: str) -> "subprocess.Popen[bytes]":
        command = self.command("run", "--lease-ttl", str(LEASE_TTL_S), *options)
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        return subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, start_new_session=True)

    def finish(self, workers: int = 1) -> None:
        running = [self.start_worker() for _ in range(workers)]
        assert [worker.wait(timeout=120) for worker in running] == [0] * workers

    def open_units(self) -> int:
        planned = json.loads((self.output / "plan.json").read_text())["units"]
        return len(planned) - len(list((self.output / "commits").glob("*")))

    def continued_units(self) -> int:
        return len({journal.stem for journal in (self.output / "journals").glob("*") if journal.suffix != ".1"})

    def verdict(self) -> dict[str, float]:
        ran = subprocess.run(self.command("verify", "--json"), capture_output=True, check=False, text=True)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return json.loads(ran.stdout)


def make_corpus(target: Path, *, items: int, min_s: float, max_s: float) -> Path:
    command = [sys.executable, "-m", "fish_cleaning", "make-corpus", "--source", str(SPEECH), "--out", str(target)]
    subprocess.run([*command, "--items", str(items), "--min-s", str(min_s), "--max-s", str(max_s)], check=True)
    return target


def wait_until(is_so: Callable[[], bool], *, timeout_s: float = 60.0) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline_s, "the condition did not come true in time"
        time.sleep(0.01)


def catches_sigterm(worker: "subprocess.Popen[bytes]") -> bool:
    """Tell whether Python has come far enough to answer; the kernel ends an earlier process without asking it."""
    status = Path(f"/proc/{worker.pid}/status").read_text()
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return bool(caught >> (signal.SIGTERM - 1) & 1)


def is_at_work(worker: "subprocess.Popen[bytes]") -> bool:
    """Tell whether the worker has a journal open."""
    for file in Path(f"/proc/{worker.pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed since it was listed
            if "/journals/" in str(file.readlink()):
                return True
    return False


def stop_s(worker: "subprocess.Popen[bytes]") -> float:
    """Tell a worker to stop and return how long it took."""
    told_at_s = time.monotonic()
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(timeout=30) == PREEMPTED
    return time.monotonic() - told_at_s


def kill(worker: "subprocess.Popen[bytes]") -> None:
    worker.kill()
    worker.wait(timeout=30)


@contextmanager
def killed_at_the_end(workers: Sequence["subprocess.Popen[bytes]"]) -> Iterator[None]:
    try:
        yield
    finally:
        for worker in workers:
            kill(worker)


def test_fifty_kills_and_fifty_stops_lose_and_double_nothing(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Three workers; each signal hits one of them at a random instant, mostly of its work, sometimes of its start."""
    job = JobFolders(source=make_corpus(tmp_path / "in", items=2000, min_s=1.2, max_s=3.0), output=tmp_path / "out")
    chance = random.Random(1)
    signals = [signal.SIGKILL] * 50 + [signal.SIGTERM] * 50
    chance.shuffle(signals)
    stops_s: list[float] = []
    workers = [job.start_worker("--max-speed", "60") for _ in range(3)]  # in order of age
    with killed_at_the_end(workers):
        for number in signals:
            victim = workers[min(chance.sample(range(3), k=2))]
            is_ready = is_at_work if chance.random() < 0.8 else catches_sigterm
            wait_until(functools.partial(is_ready, victim))
            time.sleep(chance.expovariate(1 / 0.25))
            if number == signal.SIGKILL:
                kill(victim)
            else:
                stops_s.append(stop_s(victim))
            workers.remove(victim)
            workers.append(job.start_worker("--max-speed", "60"))
    assert job.open_units() > 0, "the job was done before the last signal; make the corpus larger"
    job.finish(workers=3)
    assert job.continued_units() >= 40, "hardly any signal hit a worker at work"

    verdict = job.verdict()
    record_property("work_redone_ratio", verdict["work_redone_ratio"])
    record_property("slowest_stop_s", max(stops_s))
    print(f"redone {verdict['work_redone_ratio']:.2%}, slowest stop {max(stops_s):.3f} s")
    assert verdict["items_expected"] == 2000
    assert verdict["items_committed"] + verdict["items_rejected"] == 2000
    assert max(stops_s) <= 1.0
    # Each kill costs at most the one item that was under way.
    assert verdict["work_redone_ratio"] <= 50 / 2000


def test_a_frozen_worker_that_wakes_after_its_lease_doubles_nothing(tmp_path: Path) -> None:
    job = JobFolders(source=make_corpus(tmp_path / "in", items=40, min_s=1.5, max_s=3.0), output=tmp_path / "out")
    frozen = job.start_worker("--max-speed", "10")
    with killed_at_the_end([frozen]):
        wait_until(lambda: any((job.output / "journals").glob("*")))
        frozen.send_signal(signal.SIGSTOP)
        job.finish()
        frozen.send_signal(signal.SIGCONT)
        assert frozen.wait(timeout=60) == 0
    verdict = job.verdict()
    assert verdict["items_expected"] == verdict["items_committed"] + verdict["items_rejected"] == 40


def test_a_stop_in_the_middle_of_a_long_recording_is_obeyed_within_a_second(tmp_path: Path) -> None:
    """One recording of half an hour keeps a worker busy for many seconds; it is abandoned, not waited for."""
    job = JobFolders(source=make_corpus(tmp_path / "in", items=1, min_s=1800.0, max_s=1800.0), output=tmp_path / "out")
    worker = job.start_worker()
    with killed_at_the_end([worker]):
        wait_until(lambda: any(journal.stat().st_size for journal in (job.output / "journals").glob("*")))
        assert stop_s(worker) <= 1.0
    assert job.open_units() == 1


def test_progress_and_metrics_are_served_while_the_job_runs(tmp_path: Path) -> None:
    job = JobFolders(source=make_corpus(tmp_path / "in", items=20, min_s=1.5, max_s=3.0), output=tmp_path / "out")
    host = "127.9.0.17"
    worker = job.start_worker("--max-speed", "5", "--host", host, "--port", "8080", "--metrics-port", "9090")

    def progress() -> ProgressReport:
        with urllib.request.urlopen(f"http://{host}:8080/v1/progress", timeout=5) as answer:
            return ProgressReport.from_json(answer.read())

    with killed_at_the_end([worker]):
        wait_until(lambda: answers(progress))
        wait_until(lambda: progress().units_committed > 0)
        assert progress().items_total == 20
        with urllib.request.urlopen(f"http://{host}:9090/metrics", timeout=5) as answer:
            text = answer.read().decode()
        assert 'fish_cleaning_items_total{outcome="committed",reason=""}' in text
        assert stop_s(worker) <= 1.0


def answers(ask: Callable[[], object]) -> bool:
    try:
        ask()
    except OSError:
        return False
    return True
