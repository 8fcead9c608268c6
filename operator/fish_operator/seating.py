"""Which engine gets which GPU, over all deployments at once. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from fish_operator.fleet import Fleet
from fish_operator.pools import node_pools
from fish_operator.victims import Coming, Evict, Free, NodePool, Placement, Want, place_all
from fish_operator.view import ClusterView, ObjectKey, PodStage


class SeatKind(StrEnum):
    """Why an engine needs a place."""

    UNSCHEDULED = "unscheduled"
    """Its pod exists and the scheduler has not bound it yet."""
    MISSING = "missing"
    """Its pod is to be created."""
    HELD = "held"
    """Its pod is to be created when a back-off is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """One engine without a GPU, and where it stands."""

    owner: ObjectKey
    kind: SeatKind
    slot: int
    """Its number among its deployment's seats of this kind."""
    placement: Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class Seating:
    """All engines without a GPU, and what they leave to fill work."""

    seats: tuple[Seat, ...]
    left: tuple[NodePool, ...]

    def of(self, owner: ObjectKey, kind: SeatKind) -> tuple[Seat, ...]:
        """Return one deployment's seats of a kind, in order."""
        return tuple(seat for seat in self.seats if seat.owner == owner and seat.kind is kind)

    @property
    def is_engine_on_its_way(self) -> bool:
        """An engine is about to take a GPU; until it holds it, a new fill pod could steal it."""
        return any(
            seat.kind is not SeatKind.HELD and isinstance(seat.placement, Free | Coming | Evict) for seat in self.seats
        )


def seat_all(view: ClusterView, fleets: Sequence[Fleet]) -> Seating:
    """Seat the engines that exist first, then missing ones, fewest replicas first, then places held by a back-off."""
    requests = [
        *_requests(SeatKind.UNSCHEDULED, fleets, [_waiting_for_scheduler(fleet, view.now_s) for fleet in fleets]),
        *_requests(SeatKind.MISSING, fleets, [fleet.missing for fleet in fleets]),
        *_requests(SeatKind.HELD, fleets, [fleet.held for fleet in fleets]),
    ]
    wants = [Want(gpus=fleet.spec.pod.gpus, may_evict=kind is SeatKind.MISSING) for fleet, kind, _ in requests]
    placements, left = place_all(wants, node_pools(view))
    seats = tuple(
        Seat(owner=fleet.deployment.key, kind=kind, slot=slot, placement=placement)
        for (fleet, kind, slot), placement in zip(requests, placements, strict=True)
    )
    return Seating(seats=seats, left=left)


def _waiting_for_scheduler(fleet: Fleet, now_s: float) -> int:
    """Return how many pods the scheduler should bind at any moment; what it has not bound for long, it cannot."""
    youngest_s = now_s - fleet.spec.startup_timeout_s
    return sum(pod.stage is PodStage.UNSCHEDULED and pod.created_at_s >= youngest_s for pod in fleet.live)


def _requests(kind: SeatKind, fleets: Sequence[Fleet], counts: Sequence[int]) -> list[tuple[Fleet, SeatKind, int]]:
    requests = [(fleet, kind, slot) for fleet, number in zip(fleets, counts, strict=True) for slot in range(number)]
    return sorted(requests, key=lambda request: _turn(request[0], request[2]))


def _turn(fleet: Fleet, slot: int) -> tuple[int, float, ObjectKey]:
    return len(fleet.live) + slot, fleet.deployment.created_at_s, fleet.deployment.key
