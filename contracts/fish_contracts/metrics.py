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
CLEANING_ITEMS: Final = MetricFamily(
    name="fish_cleaning_items_total",
    kind="counter",
    help="Recordings that a worker finished, by outcome (committed, rejected) and reason of the rejection.",
    labels=("outcome", "reason"),
)
CLEANING_AUDIO_SECONDS: Final = MetricFamily(
    name="fish_cleaning_audio_seconds_total",
    kind="counter",
    help="Seconds of recorded sound that a worker has been through.",
)
CLEANING_ITEMS_REDONE: Final = MetricFamily(
    name="fish_cleaning_items_redone_total",
    kind="counter",
    help="Recordings that were done again because an earlier attempt was cut off.",
)
CLEANING_LEASES_TAKEN_OVER: Final = MetricFamily(
    name="fish_cleaning_leases_taken_over_total",
    kind="counter",
    help="Units that a worker continued after another one had begun them.",
)
CLEANING_LEASES_LOST: Final = MetricFamily(
    name="fish_cleaning_leases_lost_total",
    kind="counter",
    help="Units that another worker took over from one that still worked on them.",
)
CLEANING_CHECKPOINT_AGE: Final = MetricFamily(
    name="fish_cleaning_checkpoint_age_seconds",
    kind="gauge",
    help="Age of the oldest work of a worker that is not durable yet; 0 when all of it is.",
)
CLEANING_UNITS_TOTAL: Final = MetricFamily(
    name="fish_cleaning_units",
    kind="gauge",
    help="Units of the job that a worker works for.",
)
CLEANING_UNITS_COMMITTED: Final = MetricFamily(
    name="fish_cleaning_units_committed",
    kind="gauge",
    help="Units of the job that are published, by any worker.",
)


def all_families() -> tuple[MetricFamily, ...]:
    """Return every family of this module, in order of definition."""
    return tuple(value for value in globals().values() if isinstance(value, MetricFamily))
