"""What a cluster must be set to for the rule to hold in a second, and what each deviation costs (data; pure).

The same settings, with their reasons, are the files of slurm/conf; a test compares. Figures are measured on Slurm 22.05.8.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

Check = Callable[[str], bool]


class Weight(StrEnum):
    """What a deviation does."""

    BREAKS = "breaks the rule"
    SLOWS = "slows it down"
    RISKS = "risks work or nodes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One line of `scontrol show config` that matters."""

    name: str
    wanted: str
    """As it stands in slurm.conf, for people."""
    holds: Check
    weight: Weight
    cost: str


def _is(*values: str) -> Check:
    return lambda found: found.split(" ")[0] in values


def _mentions(word: str) -> Check:
    return lambda found: word in found.split(",")


def _seconds(low: int, high: int) -> Check:
    return lambda found: (number := found.split(" ")[0]).isdigit() and low <= int(number) <= high


def _parameter(name: str, low: int, high: int) -> Check:
    def holds(found: str) -> bool:
        values = dict(part.partition("=")[::2] for part in found.split(","))
        return values.get(name, "").isdigit() and low <= int(values[name]) <= high

    return holds


SETTINGS: Final = (
    Setting(
        name="PreemptType",
        wanted="preempt/partition_prio or preempt/qos",
        holds=_is("preempt/partition_prio", "preempt/qos"),
        weight=Weight.BREAKS,
        cost="training waits until cleaning ends by itself",
    ),
    Setting(
        name="PreemptMode",
        wanted="REQUEUE",
        holds=_is("REQUEUE"),
        weight=Weight.BREAKS,
        cost="SUSPEND keeps the GPU, so training never starts; CANCEL loses the job; OFF preempts nobody",
    ),
    Setting(
        name="JobRequeue",
        wanted="1",
        holds=_is("1"),
        weight=Weight.RISKS,
        cost="jobs without --requeue are lost when preempted",
    ),
    Setting(
        name="RequeueExit",
        wanted="75",
        holds=_mentions("75"),
        weight=Weight.RISKS,
        cost="a worker that checkpoints within a grace time counts as done and never comes back (before 24.05)",
    ),
    Setting(
        name="JobFileAppend",
        wanted="1",
        holds=_is("1"),
        weight=Weight.RISKS,
        cost="each restart wipes the log of jobs that do not ask for --open-mode=append",
    ),
    Setting(
        name="KillWait",
        wanted="10",
        holds=_seconds(5, 10),
        weight=Weight.SLOWS,
        cost="a worker that does not end on SIGTERM delays training by this and 0.45 s; never less than 5.45 s",
    ),
    Setting(
        name="CompleteWait",
        wanted="0",
        holds=_seconds(0, 0),
        weight=Weight.SLOWS,
        cost="a node may rest so long after a victim's end before training starts",
    ),
    Setting(
        name="SchedulerParameters",
        wanted="batch_sched_delay=0",
        holds=_parameter("batch_sched_delay", 0, 0),
        weight=Weight.SLOWS,
        cost="sbatch waits up to 3 s to be looked at: p50 1.31 s instead of 0.70 s",
    ),
    Setting(
        name="SchedulerParameters",
        wanted="sched_min_interval=0",
        holds=_parameter("sched_min_interval", 0, 0),
        weight=Weight.SLOWS,
        cost="the queue is not looked at when a victim ends: max 2.1 s instead of 1.1 s; p50 3.8 s at 2000000",
    ),
    Setting(
        name="SchedulerParameters",
        wanted="no defer",
        holds=lambda found: not {"defer", "defer_batch"} & set(found.split(",")),
        weight=Weight.SLOWS,
        cost="training by sbatch starts after 4.2 s instead of 0.7 s",
    ),
    Setting(
        name="JobSubmitPlugins",
        wanted="lua",
        holds=_mentions("lua"),
        weight=Weight.RISKS,
        cost="no guard: a script that loses its checkpoint is accepted",
    ),
    Setting(
        name="ProctrackType",
        wanted="proctrack/cgroup",
        holds=_is("proctrack/cgroup"),
        weight=Weight.RISKS,
        cost="a process that outlives its job keeps the GPU: training started 2.95 s before the old one had left",
    ),
    Setting(
        name="PreemptExemptTime",
        wanted="00:00:00",
        holds=_is("00:00:00", "NONE"),
        weight=Weight.SLOWS,
        cost="young cleaning cannot be preempted: 25.9 s with 20 s",
    ),
)
