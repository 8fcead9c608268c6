"""The rule: inference before cleaning, training before cleaning, neither touches the other.

The rule is a partial order, so it is written as pairs; every number that a scheduler wants is derived from them.
Changing `MAY_PREEMPT` turns red each test that compares the chart, Slurm's QOS lists and the planners with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal


class WorkClass(StrEnum):
    """What a GPU is held for."""

    INFERENCE = "inference"
    TRAINING = "training"
    CLEANING = "cleaning"


MAY_PREEMPT: Final = frozenset(
    {
        (WorkClass.INFERENCE, WorkClass.CLEANING),
        (WorkClass.TRAINING, WorkClass.CLEANING),
    }
)

# Kubernetes' priority by rank. Cluster autoscalers ignore pods below -10: fill work never buys a node.
_PRIORITY_BY_RANK: Final = (-100, 100_000)


def may_preempt(claimant: WorkClass, holder: WorkClass) -> bool:
    """Tell whether `claimant` may take a GPU that `holder` has."""
    return (claimant, holder) in MAY_PREEMPT


def rank(work_class: WorkClass) -> int:
    """Return the length of the longest chain of classes that may be preempted below this one."""
    below = [holder for claimant, holder in MAY_PREEMPT if claimant is work_class]
    return 1 + max(map(rank, below)) if below else 0


def priority_value(work_class: WorkClass) -> int:
    """Return the value of the Kubernetes PriorityClass of this class of work."""
    return _PRIORITY_BY_RANK[rank(work_class)]


def preemption_policy(work_class: WorkClass) -> Literal["PreemptLowerPriority", "Never"]:
    """Return the Kubernetes `preemptionPolicy`: who may preempt nobody must say so, or the scheduler preempts for it."""
    return "PreemptLowerPriority" if any(claimant is work_class for claimant, _ in MAY_PREEMPT) else "Never"


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Running work that holds GPUs of one pool.

    `work_at_risk_s` is the work, in seconds, that stopping it now would throw away: since its last durable checkpoint, plus
    what a restart costs. Work that never says is charged its whole run, so it gains no protection by silence.
    """

    name: str
    work_class: WorkClass
    gpus: int
    started_at_s: float
    work_at_risk_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reclaim:
    """Stop these holders; together with what is free or coming, their GPUs meet the need."""

    victims: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """The need cannot be met: `missing_gpus` are held by work that the claimant may not preempt, or do not exist."""

    missing_gpus: int


def plan_reclaim(
    *, claimant: WorkClass, needed_gpus: int, available_gpus: int, holders: Sequence[Holder]
) -> Reclaim | Refuse:
    """Choose whom to stop so that `claimant` can have `needed_gpus` of one pool.

    `available_gpus` counts GPUs that are free and those that already stopped holders will give back: counting the second
    kind is what keeps a repeated or restarted decision from evicting twice. Cheapest work goes first, newest first among
    equals, and no victim is named that the others make unnecessary.
    """
    shortfall = needed_gpus - available_gpus
    if shortfall <= 0:
        return Reclaim(victims=())
    candidates = sorted(
        (holder for holder in holders if may_preempt(claimant, holder.work_class)),
        key=lambda holder: (holder.work_at_risk_s, -holder.started_at_s, holder.name),
    )
    victims: list[Holder] = []
    gained = 0
    for holder in candidates:
        if gained >= shortfall:
            break
        victims.append(holder)
        gained += holder.gpus
    if gained < shortfall:
        return Refuse(missing_gpus=shortfall - gained)
    for holder in sorted(victims, key=lambda victim: -victim.work_at_risk_s):
        if gained - holder.gpus >= shortfall:
            victims.remove(holder)
            gained -= holder.gpus
    return Reclaim(victims=tuple(victim.name for victim in victims))
