"""Which engine goes when there is one too many. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final

from fish_contracts.reports import LoadReport
from fish_operator.view import PodStage, PodView

_ORDER: Final = (PodStage.UNSCHEDULED, PodStage.STARTING, PodStage.UNREADY, PodStage.READY)
"""What is not there yet goes before what serves, so falling demand cancels pending replicas first."""


def first_to_drain(engines: Sequence[PodView], loads: Mapping[str, LoadReport]) -> PodView | None:
    """Return the live engine whose end costs least: not serving, else fewest streams, else newest."""
    candidates = [engine for engine in engines if engine.stage in _ORDER and not engine.is_draining]
    return min(candidates, key=lambda engine: _cost(engine, loads.get(engine.uid)), default=None)


def _cost(engine: PodView, load: LoadReport | None) -> tuple[int, int, float, str]:
    # An engine that does not say may hold any number of streams.
    streams = load.active_streams + load.queued_streams if load else 1_000_000
    return _ORDER.index(engine.stage), streams, -engine.created_at_s, engine.key.name
