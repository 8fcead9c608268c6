"""Workers killed, stopped and frozen while their storage fails too: every item exactly once, and little of it done twice."""

import os
import random
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from fish_contracts.reports import ProgressReport

PREEMPTED = 75
WORKERS = 3
LEASE_TTL_S = 4.0
SPEED = 8.0  # seconds of audio a second and worker: a job that outlasts its storm
RECIPE = "name: storm\nunits: {max_items: 25}\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    items: int
    kills: int
    stops: int
    freezes: int
    outages: int


SMALL = Scale(items=500, kills=12, stops=8, freezes=3, outages=1)
FULL = Scale(items=3750, kills=100, stops=50, freezes=20, outages=3)


@dataclass(slots=True, kw_only=True)
class RunningWorker:
    """A worker under way. `host` is where it answers for its progress."""

    process: "subprocess.Popen[bytes]"
    host: str
    thaws_at_s: float | None = None

    def is_at_work(self) -> bool:
        """Tell whether it has been through any audio."""
        with suppress(OSError), urllib.request.urlopen(f"http://{self.host}:8080/v1/progress", timeout=2.0) as answer:
            return ProgressReport.from_json(answer.read()).audio_s > 0
        return False


@dataclass(slots=True, kw_only=True)
class Storm:
    """Three workers that are not frozen, at any time, and what was done to them."""

    job: Any
    recipe: str
    chance: random.Random
    workers: list[RunningWorker] = field(default_factory=list)
    stops_s: list[float] = field(default_factory=list)
    started: int = 0

    def start_worker(self, *options: str) -> RunningWorker:
        self.started += 1
        host = f"127.9.{self.started // 250}.{2 + self.started % 250}"
        ttl = ("--recipe", self.recipe, "--lease-ttl", str(LEASE_TTL_S), "--host", host)
        worker = RunningWorker(process=self.job.start_worker(*ttl, *options), host=host)
        self.workers.append(worker)
        return worker

    def hit(self, number: signal.Signals) -> None:
        """Hit a worker at a random instant, mostly of its work."""
        victim = self.chance.choice(self.awake())
        if self.chance.random() < 0.8:
            wait_until(lambda: victim.is_at_work() or victim.process.poll() is not None, timeout_s=90.0)
        time.sleep(self.chance.expovariate(1 / 0.25))
        self.thaw()
        if number is signal.SIGSTOP:
            victim.process.send_signal(number)
            victim.thaws_at_s = time.monotonic() + 1.5 * LEASE_TTL_S
        else:
            self.end(victim, number)
        self.fill_up()

    def awake(self) -> list[RunningWorker]:
        """Return the workers that are not frozen."""
        return [worker for worker in self.workers if worker.thaws_at_s is None]

    def fill_up(self) -> None:
        """Start workers until enough are awake."""
        while len(self.awake()) < WORKERS:
            self.start_worker("--max-speed", str(SPEED))

    def end(self, victim: RunningWorker, number: signal.Signals) -> None:
        """Kill a worker, or tell it to stop and time that."""
        told_at_s = time.monotonic()
        victim.process.send_signal(number)
        status = victim.process.wait(timeout=30)
        if number is signal.SIGTERM and victim_could_hear(status):
            self.stops_s.append(time.monotonic() - told_at_s)
        self.workers.remove(victim)

    def thaw(self, *, at_once: bool = False) -> None:
        """Wake the workers whose leases have run out meanwhile; they end with the job, or are killed for the next one."""
        for worker in [worker for worker in self.workers if worker.thaws_at_s is not None]:
            if at_once or worker.thaws_at_s <= time.monotonic():
                worker.process.send_signal(signal.SIGCONT)
                worker.thaws_at_s = None


def victim_could_hear(status: int) -> bool:
    """Tell whether Python had come far enough to answer a stop; the kernel ends an earlier process without asking it."""
    assert status in (PREEMPTED, -signal.SIGTERM), f"exit status {status}"
    return status == PREEMPTED


def wait_until(is_so: Callable[[], bool], *, timeout_s: float) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline_s, "the condition did not come true in time"
        time.sleep(0.02)


@pytest.fixture
def storm(s3_job: Callable[..., Any], faulty_proxy: Callable[..., Any], tmp_path: Any) -> Iterator[Storm]:
    """Return a storm about to begin; whatever is left of it is killed at the end."""
    scale = chosen_scale()
    proxy = faulty_proxy(refused=0.01, broken=0.01, lost=0.01, stuck=0.001)
    recipe = tmp_path / "storm.yaml"
    recipe.write_text(RECIPE)
    made = Storm(job=s3_job(items=scale.items, endpoint=proxy.endpoint), recipe=str(recipe), chance=random.Random(1))
    yield made
    for worker in made.workers:
        worker.process.kill()
        worker.process.wait(timeout=30)


def chosen_scale() -> Scale:
    return FULL if os.environ.get("FISH_S3_SCALE") == "full" else SMALL


@pytest.mark.timeout(1800)
def test_a_storm_over_failing_storage_loses_and_doubles_nothing(storm: Storm) -> None:
    scale = chosen_scale()
    signals = [signal.SIGKILL] * scale.kills + [signal.SIGTERM] * scale.stops + [signal.SIGSTOP] * scale.freezes
    storm.chance.shuffle(signals)
    outages = {len(signals) * (number + 1) // (scale.outages + 1) for number in range(scale.outages)}
    storm.fill_up()
    for number, one in enumerate(signals):
        if number in outages:
            storm.job.server.kill()
            storm.end(storm.awake()[0], signal.SIGTERM)  # nobody answers it now
            storm.fill_up()
            storm.job.server.start()
        storm.hit(one)
    storm.thaw(at_once=True)
    published, planned = storm.job.units()
    assert published < planned, "the job was done before the last signal; make it larger"
    for _ in range(WORKERS):
        storm.start_worker()
    for worker in storm.workers:
        assert worker.process.wait(timeout=300) == 0
    judge(storm, scale)


def judge(storm: Storm, scale: Scale) -> None:
    verdict = storm.job.verdict()
    redone = verdict["work_redone_ratio"]
    print(f"redone {redone:.2%} of {verdict['items_expected']} items, slowest stop {max(storm.stops_s):.3f} s")
    print(f"units {verdict['units_total']}, continued {len(storm.job.names('journals')) - verdict['units_total']}")
    assert verdict["items_committed"] + verdict["items_rejected"] == verdict["items_expected"] >= scale.items - 1
    assert max(storm.stops_s) <= 1.0
    assert redone <= 0.03
