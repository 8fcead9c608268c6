"""Where engines get their GPUs from: free ones, coming ones, and only then fill workers that must go. Pure.

A GPU that an evicted worker has not left yet counts as coming. That is what keeps the next tick, or a restarted operator,
from evicting a second worker for the same engine.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fish_contracts.priority import Holder, Reclaim, WorkClass, plan_reclaim


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePool:
    """The GPUs of one node that are, or could become, an engine's."""

    name: str
    free: int
    coming: int
    """Held by fill workers that are on their way out."""
    holders: tuple[Holder, ...] = ()
    """Fill workers that stay unless evicted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """One engine's need of GPUs on one node."""

    gpus: int
    may_evict: bool
    """False for pods that exist already (evicting is the scheduler's then) and for places held by a back-off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Free:
    """A node has the GPUs now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coming:
    """A node will have the GPUs when workers that are already going have gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evict:
    """A node will have the GPUs when these workers have gone, too."""

    victims: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoRoom:
    """No node can have the GPUs: others hold them, or they do not exist."""


Placement = Free | Coming | Evict | NoRoom


def place_all(wants: Sequence[Want], pools: Sequence[NodePool]) -> tuple[list[Placement], tuple[NodePool, ...]]:
    """Place each want in turn; return the placements and what is left of the pools."""
    left = tuple(pools)
    placements: list[Placement] = []
    for want in wants:
        placement, left = _place(want, left)
        placements.append(placement)
    return placements, left


def _place(want: Want, pools: tuple[NodePool, ...]) -> tuple[Placement, tuple[NodePool, ...]]:
    # The fullest node that fits, as the scheduler is told to choose: large holes stay for large engines.
    fitting = [pool for pool in pools if pool.free >= want.gpus]
    if fitting:
        return Free(), _taken(pools, min(fitting, key=lambda pool: (pool.free, pool.name)), want.gpus)
    fitting = [pool for pool in pools if pool.free + pool.coming >= want.gpus]
    if fitting:
        return Coming(), _taken(pools, min(fitting, key=lambda pool: (pool.free + pool.coming, pool.name)), want.gpus)
    return _evict(want, pools) if want.may_evict else (NoRoom(), pools)


def _taken(pools: tuple[NodePool, ...], chosen: NodePool, gpus: int) -> tuple[NodePool, ...]:
    from_free = min(chosen.free, gpus)
    after = replace(chosen, free=chosen.free - from_free, coming=chosen.coming - (gpus - from_free))
    return tuple(after if pool is chosen else pool for pool in pools)


def _evict(want: Want, pools: tuple[NodePool, ...]) -> tuple[Placement, tuple[NodePool, ...]]:
    """Evict on the node where it throws the least work away."""
    choices: list[tuple[float, int, str, NodePool, Reclaim]] = []
    for pool in pools:
        plan = plan_reclaim(
            claimant=WorkClass.INFERENCE,
            needed_gpus=want.gpus,
            available_gpus=pool.free + pool.coming,
            holders=pool.holders,
        )
        if isinstance(plan, Reclaim):
            lost_s = sum(holder.work_at_risk_s for holder in pool.holders if holder.name in plan.victims)
            choices.append((lost_s, len(plan.victims), pool.name, pool, plan))
    if not choices:
        return NoRoom(), pools
    _, _, _, chosen, plan = min(choices, key=lambda choice: choice[:3])
    gained = sum(holder.gpus for holder in chosen.holders if holder.name in plan.victims)
    staying = tuple(holder for holder in chosen.holders if holder.name not in plan.victims)
    after = replace(chosen, coming=chosen.coming + gained, holders=staying)
    pools = tuple(after if pool is chosen else pool for pool in pools)
    return Evict(victims=plan.victims), _taken(pools, after, want.gpus)
