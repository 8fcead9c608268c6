"""Every metric family, once. Each room's `telemetry.py` turns its families into Prometheus objects.

Dashboards and rules are tested against this list, so a series that is drawn is a series that exists.
"""

from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricFamily:
    """One metric. `name` is the series as people type it in a query, with `_total` on counters."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


LATENCY_BUCKETS_S: Final = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Dense from 10 to 500 ms, where first audio is decided."""
RECLAIM_BUCKETS_S: Final = (0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 10.0, 12.0, 15.0, 20.0, 30.0, 60.0, 120.0)

# --- engine ---------------------------------------------------------------------------------------------------------
# --- operator -------------------------------------------------------------------------------------------------------
# --- cleaning -------------------------------------------------------------------------------------------------------


def all_families() -> tuple[MetricFamily, ...]:
    """Return every family of this module, in order of definition."""
    return tuple(value for value in globals().values() if isinstance(value, MetricFamily))
