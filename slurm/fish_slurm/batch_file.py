"""The batch file of one cleaning worker as text (pure).

Everything in it answers something that loses work or GPUs on a real Slurm:

- `exec` makes the worker the batch process itself. A child that bash waits for never hears of preemption under
  proctrack/cgroup, and under linuxproc it outlives bash and still holds the GPU when training starts.
- `--requeue` and exit status 75 bring the job back; `--open-mode=append` keeps its log over restarts.
- The summary's path holds the restart count, so what a run achieved is known even after the next one began.
- No `--export`: anything but ALL makes slurmd run a login shell for the user's environment, 2-4 s before each start.
- A job that starts in the second after a restart of slurmctld may be told of no GPU, though it holds one: it would use those of
  others. It goes back into the queue instead.
- Each worker listens on a loopback address made from its job id, so several on one node need no ports of their own.
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from fish_contracts.exit_codes import ExitCode
from fish_contracts.reports import HTTP_PORT, METRICS_PORT
from fish_slurm.errors import BadSetting

COMMENT_PREFIX: Final = "fish:"
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")
_BARE_WORD: Final = re.compile(r"[A-Za-z0-9_./:@+=,~-]+")
_MIN_KILL_WAIT_S: Final = 5  # Slurm treats less as this
_ADDRESS: Final = "127.$((1 + SLURM_JOB_ID / 65536 % 254)).$((SLURM_JOB_ID / 256 % 256)).$((SLURM_JOB_ID % 256))"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerJob:
    """One worker of a cleaning job, as Slurm is asked for it."""

    name: str
    """Of the cleaning job: what its workers share."""
    input: str
    output: str
    recipe: str
    run_folder: str
    """On a file system that submit host and nodes share: logs and the summaries of ended runs."""
    slot: int = 0
    """Which of the cleaning job's workers this is; a slot never has two live jobs."""
    worker: tuple[str, ...] = ("python3", "-m", "fish_cleaning")
    partition: str = "clean"
    qos: str | None = None
    account: str | None = None
    gpus: int = 1
    cpus: int = 2
    memory_mib: int | None = None
    checkpoint_budget_s: int = 10
    """The cluster's KillWait: the worker is killed so long after SIGTERM."""

    def __post_init__(self) -> None:
        """Refuse what a batch file or a worker could not take."""
        if not _NAME.fullmatch(self.name):
            raise BadSetting(f"cleaning job name {self.name!r}: use 1 to 40 of a-z, 0-9 and '-', not '-' at either end")
        for field in ("partition", "qos", "account", "run_folder"):
            value = getattr(self, field)
            if value is not None and not _BARE_WORD.fullmatch(value):
                raise BadSetting(
                    f"{field} {value!r}: use letters, digits and _./:@+=,~- only; sbatch reads it unquoted"
                )
        for field in ("input", "output", "recipe"):
            value = getattr(self, field)
            if not value or not value.isprintable():
                raise BadSetting(f"{field} {value!r}: give a path or URI in one line")
        if not PurePosixPath(self.run_folder).is_absolute():
            raise BadSetting(f"run_folder {self.run_folder!r}: give an absolute path on a shared file system")
        if min(self.gpus, self.cpus) < 1 or self.slot < 0:
            raise BadSetting(f"gpus {self.gpus}, cpus {self.cpus}, slot {self.slot}: at least 1, 1 and 0")
        if self.checkpoint_budget_s < _MIN_KILL_WAIT_S:
            raise BadSetting(f"checkpoint budget {self.checkpoint_budget_s} s: Slurm's KillWait is never below 5 s")

    @property
    def label(self) -> str:
        """What the job's comment says, so that a filler that starts anew knows its jobs."""
        return f"{COMMENT_PREFIX}job={self.name};slot={self.slot}"


def batch_file(job: WorkerJob) -> str:
    """Return the script for `sbatch`: ready to run, by the filler or by hand."""
    runs = f"{job.run_folder.rstrip('/')}/{job.name}"
    lines = [
        "#!/bin/bash",
        f"# A worker of the cleaning job {job.name}, written by fish-slurm. `sbatch THIS_FILE` runs it by hand.",
        *(f"#SBATCH --{option}" for option in _options(job, runs)),
        "",
        f"export FISH_CHECKPOINT={shlex.quote(job.output)}",
        f"export FISH_CHECKPOINT_BUDGET_S={job.checkpoint_budget_s}",
        f'export TERMINATION_LOG="{runs}/$SLURM_JOB_ID.${{SLURM_RESTART_COUNT:-0}}.json"',
        f'[ -n "${{CUDA_VISIBLE_DEVICES:-}}" ] || exit {ExitCode.PREEMPTED:d}',
        "exec " + _continued(_worker_words(job)),
    ]
    return "\n".join(lines) + "\n"


def read_label(comment: str) -> tuple[str, int] | None:
    """Return the cleaning job and slot that a job's comment names, or None if it is not ours."""
    match = re.fullmatch(rf"{COMMENT_PREFIX}job=({_NAME.pattern});slot=(\d+)", comment)
    return (match[1], int(match[3])) if match else None


def _options(job: WorkerJob, runs: str) -> list[str]:
    options = [
        f"job-name=fish-{job.name}",
        f"comment={job.label}",
        f"partition={job.partition}",
        f"gres=gpu:{job.gpus}",
        f"cpus-per-task={job.cpus}",
        f"output={runs}/%j.log",
        "open-mode=append",
        "requeue",
    ]
    optional = {"qos": job.qos, "account": job.account, "mem": f"{job.memory_mib}M" if job.memory_mib else None}
    return options + [f"{name}={value}" for name, value in optional.items() if value]


def _worker_words(job: WorkerJob) -> list[str]:
    return [
        " ".join(shlex.quote(word) for word in (*job.worker, "run")),
        f"--input {shlex.quote(job.input)}",
        f"--output {shlex.quote(job.output)}",
        f"--recipe {shlex.quote(job.recipe)}",
        f'--host "{_ADDRESS}"',
        f"--port {HTTP_PORT} --metrics-port {METRICS_PORT}",
    ]


def _continued(words: list[str]) -> str:
    return " \\\n    ".join(words)
