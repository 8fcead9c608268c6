"""What the operator remembers between ticks. Losing it costs patience and precision, never correctness.

After a restart windows are empty, so nothing scales down before a whole window was seen; times of reclaims in flight fall
back to the notes on pods and to the API server's own times, which are whole seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fish_operator.demand import DemandWindow
from fish_operator.notes import ReclaimNote
from fish_operator.view import ObjectKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """When the stages of an engine's start were first seen, in seconds since the epoch."""

    scheduled_at_s: float | None = None
    started_at_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Everything that one tick hands to the next."""

    windows: Mapping[ObjectKey, DemandWindow] = field(default_factory=dict)
    short_since_s: Mapping[ObjectKey, tuple[float, ...]] = field(default_factory=dict)
    """Per deployment: since when each missing engine has been missing, longest first."""
    freeing: Mapping[str, ReclaimNote] = field(default_factory=dict)
    """By victim uid: workers on their way out for an engine."""
    freed: tuple[ReclaimNote, ...] = ()
    """GPUs whose worker has gone and whose engine is not created yet."""
    sightings: Mapping[str, Sighting] = field(default_factory=dict)
    """By engine uid."""
    accounted: frozenset[str] = frozenset()
    """Ended pods, by uid, that the counts contain."""
    refusals: Mapping[str, str] = field(default_factory=dict)
    """By owner uid: why the last round could not create its pods."""

    def refused(self, refusals: Mapping[str, str]) -> "History":
        """Return this history with what the API server refused to create."""
        return replace(self, refusals=refusals)

    def not_accounting(self, before: "History") -> "History":
        """Return this history for when a status was not written: ends that it would have counted are still news."""
        return replace(self, accounted=before.accounted)
