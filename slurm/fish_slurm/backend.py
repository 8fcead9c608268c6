"""What the filler needs of Slurm, whichever way it is reached."""

from typing import Protocol

from fish_slurm.view import Job, Node


class Backend(Protocol):
    """Reads and changes a cluster. Each method raises SlurmFailed when Slurm refuses or does not answer in time."""

    def jobs(self) -> tuple[Job, ...]:
        """Return all jobs that Slurm remembers, the caller's own with their labels."""
        ...

    def nodes(self) -> tuple[Node, ...]:
        """Return the nodes of the cleaning partition."""
        ...

    def submit(self, script: str) -> int:
        """Submit a batch file and return the job's id."""
        ...

    def start_now(self, job_id: int) -> None:
        """Take away a pending job's begin time."""
        ...

    def hold(self, job_id: int) -> None:
        """Keep a pending job from running."""
        ...

    def cancel_pending(self, job_id: int) -> None:
        """Remove a job unless it has begun to run."""
        ...
