"""Stops giving GPUs to cleaning that does not get on with it (pure).

Three things count against a worker's job: it was restarted although the run before was long enough to achieve something and
achieved nothing; it failed; it says it is done while its cleaning job is not. Three in a row hold it. An exit status after which
starting again cannot help holds the cleaning job at once. A run that finished even one recording wipes the slate.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from fish_slurm.view import HOPELESS, ClusterView, Job, Phase, RunSummary

Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The run of a job that was seen last."""

    restarts: int
    started_at_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What the filler knows beyond the queue of now; Slurm forgets ended jobs after MinJobAge.

    Losing it with the process is harmless: a finished cleaning job costs one worker that exits at once, a bad one three tries.
    """

    runs: Mapping[int, Run] = field(default_factory=dict)
    strikes: Mapping[int, int] = field(default_factory=dict)
    """By job: runs in a row without progress."""
    failures: Mapping[str, int] = field(default_factory=dict)
    """By cleaning job: workers in a row that failed without progress."""
    ended: frozenset[int] = frozenset()
    """Jobs whose end is accounted for."""
    complete: frozenset[str] = frozenset()
    hopeless: Mapping[str, str] = field(default_factory=dict)
    """Cleaning jobs that no worker can do, and why."""


def remember(memory: Memory, view: ClusterView, *, min_useful_run_s: float) -> Memory:
    """Return the memory after this look at the cluster."""
    memory = _without_forgotten(memory, {job.job_id for job in view.jobs})
    for job in view.jobs:
        if job.label is None:
            continue
        if job.phase is Phase.ENDED:
            if job.job_id not in memory.ended:
                memory = _account_for_end(memory, job, view.summaries)
        else:
            memory = _account_for_restart(memory, job, view.summaries, min_useful_run_s)
    return memory


def _without_forgotten(memory: Memory, known: set[int]) -> Memory:
    """Drop what belongs to jobs that Slurm itself has forgotten: they cannot be seen again."""
    if memory.ended | memory.runs.keys() | memory.strikes.keys() <= known:
        return memory
    return replace(
        memory,
        ended=memory.ended & known,
        runs={job_id: run for job_id, run in memory.runs.items() if job_id in known},
        strikes={job_id: count for job_id, count in memory.strikes.items() if job_id in known},
    )


def _account_for_restart(
    memory: Memory, job: Job, summaries: Mapping[tuple[int, int], RunSummary], min_useful_run_s: float
) -> Memory:
    before = memory.runs.get(job.job_id)
    if before is not None and job.restarts > before.restarts:
        ended_at_s = job.submitted_at_s  # of a requeued job: when it went back
        summary = summaries.get((job.job_id, before.restarts))
        if summary and summary.items_finished:
            memory = _progress(memory, job)
        elif ended_at_s - before.started_at_s >= min_useful_run_s:
            memory = replace(memory, strikes=_plus_one(memory.strikes, job.job_id))
        memory = replace(memory, runs=_without(memory.runs, job.job_id))
    if job.phase is Phase.RUNNING and job.started_at_s is not None:
        run = Run(restarts=job.restarts, started_at_s=job.started_at_s)
        memory = replace(memory, runs={**memory.runs, job.job_id: run})
    return memory


def _account_for_end(memory: Memory, job: Job, summaries: Mapping[tuple[int, int], RunSummary]) -> Memory:
    assert job.label is not None
    name, summary = job.label.name, summaries.get((job.job_id, job.restarts))
    memory = replace(
        memory,
        ended=memory.ended | {job.job_id},
        runs=_without(memory.runs, job.job_id),
        strikes=_without(memory.strikes, job.job_id),
    )
    if summary and summary.is_complete:
        return replace(memory, complete=memory.complete | {name})
    if job.state == "FAILED" and job.exit_status in HOPELESS:
        reason = f"job {job.job_id} ended with exit status {job.exit_status}; its log says why"
        return replace(memory, hopeless={**memory.hopeless, name: reason})
    if summary and summary.items_finished:
        return _progress(memory, job)
    if job.state in {"FAILED", "COMPLETED", "OUT_OF_MEMORY", "TIMEOUT"}:
        return replace(memory, failures=_plus_one(memory.failures, name))
    return memory  # CANCELLED, PREEMPTED, NODE_FAIL: nobody's fault here


def _progress(memory: Memory, job: Job) -> Memory:
    assert job.label is not None
    return replace(
        memory,
        strikes=_without(memory.strikes, job.job_id),
        failures=_without(memory.failures, job.label.name),
    )


def _plus_one(counts: Mapping[Key, int], key: Key) -> Mapping[Key, int]:
    return {**counts, key: counts.get(key, 0) + 1}


def _without(table: Mapping[Key, Value], key: Key) -> Mapping[Key, Value]:
    return {other: value for other, value in table.items() if other != key} if key in table else table
