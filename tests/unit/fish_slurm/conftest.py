"""Builders with defaults, and what real Slurms printed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fish_contracts.priority import WorkClass
from fish_slurm.batch_file import WorkerJob
from fish_slurm.decide import Limits
from fish_slurm.view import ClusterView, Job, Label, Node, Phase

NOW_S = 10_000
PARTITIONS = {"clean": WorkClass.CLEANING, "train": WorkClass.TRAINING, "serve": WorkClass.INFERENCE}


@pytest.fixture(scope="session")
def recorded() -> Path:
    """The folder of recorded output; its README says what is from where."""
    return Path(__file__).with_name("recorded")


@pytest.fixture(scope="session")
def slurm_folder() -> Path:
    """The folder of conf/ and job_submit.lua."""
    return Path(__file__).parents[3] / "slurm"


@pytest.fixture(scope="session")
def worker_job() -> Callable[..., WorkerJob]:
    """Build a worker's job."""

    def build(**changes: object) -> WorkerJob:
        settings = {
            "name": "librivox",
            "input": "/data/librivox",
            "output": "/data/librivox clean",
            "recipe": "quick",
            "run_folder": "/shared/fish/runs",
        }
        return WorkerJob(**(settings | changes))

    return build


@pytest.fixture(scope="session")
def cleaning() -> Callable[..., Job]:
    """Build a worker's job in the queue: `cleaning(7, slot=2, reason="BeginTime")`."""

    def build(job_id: int, *, slot: int = 0, name: str = "demo", **changes: object) -> Job:
        return _job(job_id, label=Label(name=name, slot=slot), **changes)

    return build


@pytest.fixture(scope="session")
def training() -> Callable[..., Job]:
    """Build a training job that waits for GPUs."""

    def build(job_id: int, **changes: object) -> Job:
        return _job(job_id, **({"partition": "train", "user_id": 7} | changes))

    return build


def _job(job_id: int, **changes: object) -> Job:
    settings = {
        "job_id": job_id,
        "user_id": 1,
        "phase": Phase.PENDING,
        "state": "PENDING",
        "reason": "Resources",
        "partition": "clean",
        "gpus": 1,
        "restarts": 0,
        "exit_status": 0,
        "submitted_at_s": NOW_S - 100,
        "started_at_s": None,
    }
    if changes.get("phase") is Phase.RUNNING:
        settings |= {"state": "RUNNING", "reason": "None", "started_at_s": NOW_S - 90}
    return Job(**(settings | changes))


@pytest.fixture(scope="session")
def view() -> Callable[..., ClusterView]:
    """Build a view of one node of eight GPUs, `used_gpus` of them in use."""

    def build(*jobs: Job, used_gpus: int = 0, **changes: object) -> ClusterView:
        node = Node(name="n1", gpus=8, used_gpus=used_gpus, takes_work=True, reason="")
        return ClusterView(**({"now_s": NOW_S, "jobs": jobs, "nodes": (node,), "summaries": {}} | changes))

    return build


@pytest.fixture(scope="session")
def limits() -> Callable[..., Limits]:
    """Build the filler's limits, without a buffer unless asked for."""
    return lambda **changes: Limits(**({"pending_buffer": 0, "partition_classes": PARTITIONS} | changes))
