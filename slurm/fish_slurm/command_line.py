"""Slurm by its own commands: always there, the same on every release, 20 ms a call."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import Final

from fish_slurm.errors import MissingPart, SlurmFailed
from fish_slurm.tables import JOB_COLUMNS, NODE_COLUMNS, format_option, parse_jobs, parse_labels, parse_nodes
from fish_slurm.view import Job, Label, Node

_OVERRIDES: Final = ("SQUEUE_", "SINFO_", "SBATCH_", "SCANCEL_", "SLURM_JOB", "SLURM_TIME_FORMAT")
"""Variables by which a user's shell would change what the commands print or ask for."""

_JOB_ENVIRONMENT: Final = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "TMPDIR", "SLURM_CONF")
"""What a worker gets of its submitter's environment: a filler's shell must not decide how workers run."""


def run_command(
    arguments: Sequence[str],
    *,
    stdin: str = "",
    environment: Mapping[str, str] | None = None,
    inherit: Sequence[int] = (),
    timeout_s: float = 15,
) -> str:
    """Return what a Slurm command printed; raise SlurmFailed with its own words if it failed or did not answer.

    `inherit` are file descriptors that the command keeps open until it ends.
    """
    name = arguments[0]
    try:
        done = subprocess.run(
            arguments,
            input=stdin,
            env=_plain(environment or os.environ),
            pass_fds=inherit,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except FileNotFoundError as error:
        raise MissingPart(f"{name} not found; install slurm-client, or run this on a host that has it") from error
    except subprocess.TimeoutExpired as error:
        raise SlurmFailed(f"{name} did not answer within {timeout_s:g} s; is slurmctld up?") from error
    if done.returncode:
        raise SlurmFailed(f"{' '.join(arguments[:3])} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


class CommandLine:
    """The `Backend` of every installation."""

    def __init__(
        self,
        *,
        partition: str,
        environment: Mapping[str, str] | None = None,
        inherit: Sequence[int] = (),
    ) -> None:
        self._partition = partition
        self._environment = environment
        self._inherit = tuple(inherit)
        self._user_id = os.getuid()
        self._labels: dict[int, Label] = {}
        self._unlabelled: set[int] = set()

    def jobs(self) -> tuple[Job, ...]:
        """Return all jobs that Slurm remembers, the caller's own with their labels."""
        try:
            table = self._run("squeue", "--all", "--states=all", f"--Format={format_option(JOB_COLUMNS)}")
        except SlurmFailed:
            self._labels.clear()  # a slurmctld that lost its last seconds may give the same ids again
            raise
        jobs = parse_jobs(table, self._labels)
        own = {job.job_id for job in jobs if job.user_id == self._user_id}
        if own <= self._labels.keys() | self._unlabelled:
            return jobs
        # Comments never change, so they are asked for only when a job is new: no third call in a quiet second.
        labels = parse_labels(self._run("squeue", "--me", "--all", "--states=all", "--noheader", "--format=%A|%k"))
        self._labels = {job_id: label for job_id, label in labels.items() if job_id in own}
        self._unlabelled = own - self._labels.keys()
        return parse_jobs(table, self._labels)

    def nodes(self) -> tuple[Node, ...]:
        """Return the nodes of the cleaning partition."""
        columns = format_option(NODE_COLUMNS)
        return parse_nodes(self._run("sinfo", "--Node", f"--partition={self._partition}", f"--Format={columns}"))

    def submit(self, script: str) -> int:
        """Submit a batch file and return the job's id."""
        whole = self._environment or os.environ
        environment = {name: whole[name] for name in _JOB_ENVIRONMENT if name in whole}
        said = run_command(["sbatch", "--parsable"], stdin=script, environment=environment, inherit=self._inherit)
        return int(said.strip().split(";")[0])  # with several clusters: id;cluster

    def start_now(self, job_id: int) -> None:
        """Take away a pending job's begin time."""
        self._run("scontrol", "update", f"JobId={job_id}", "StartTime=now")

    def hold(self, job_id: int) -> None:
        """Keep a pending job from running."""
        self._run("scontrol", "hold", str(job_id))

    def cancel_pending(self, job_id: int) -> None:
        """Remove a job unless it has begun to run."""
        self._run("scancel", "--state=PENDING", str(job_id))

    def _run(self, *arguments: str, stdin: str = "") -> str:
        return run_command(arguments, stdin=stdin, environment=self._environment, inherit=self._inherit)


def _plain(environment: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in environment.items() if not name.startswith(_OVERRIDES)}
    return kept | {"SLURM_TIME_FORMAT": "%s", "LC_ALL": "C"}
