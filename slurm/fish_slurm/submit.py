"""Submits a cleaning job's workers by hand, without a filler."""

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from fish_slurm.backend import Backend
from fish_slurm.batch_file import WorkerJob, batch_file
from fish_slurm.errors import BadSetting, SlurmFailed


def check_plan(job: WorkerJob) -> None:
    """Let the worker itself say whether it can do this job, so that an unknown recipe never reaches the queue."""
    arguments = ["plan", "--input", job.input, "--output", job.output, "--recipe", job.recipe]
    try:
        done = subprocess.run([*job.worker, *arguments], capture_output=True, text=True, timeout=300, check=False)
    except FileNotFoundError as error:
        raise BadSetting(
            f"worker {job.worker[0]!r} not found on this host; give --worker as nodes should start it"
        ) from error
    if done.returncode:
        raise BadSetting(f"nothing submitted: {done.stderr.strip() or done.stdout.strip()}")


def submit_workers(backend: Backend, job: WorkerJob, workers: int) -> Iterator[int]:
    """Submit workers for the slots that have none yet, so that a second call submits nothing twice; give their job ids."""
    (Path(job.run_folder) / job.name).mkdir(parents=True, exist_ok=True)
    alive = [other for other in backend.jobs() if other.label and other.phase != "ended"]
    taken = {other.label.slot for other in alive if other.label and other.label.name == job.name}
    free = [slot for slot in range(workers) if slot not in taken]
    if not free:
        raise SlurmFailed(f"cleaning job {job.name} has its {workers} workers in the queue already")
    for slot in free:
        yield backend.submit(batch_file(replace(job, slot=slot)))
