"""The worker's counts as Prometheus metrics, made when they are asked for."""

import time
from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from fish_cleaning.progress import Progress
from fish_cleaning.tally import Tally
from fish_contracts import metrics
from fish_contracts.metrics import MetricFamily


class TallyCollector(Collector):
    """Reads the tally and the progress at each scrape."""

    def __init__(self, tally: Tally, progress: Progress) -> None:
        self._tally, self._progress = tally, progress

    def collect(self) -> Iterator[Metric]:
        """Yield every family of the cleaning block."""
        tally, report = self._tally, self._progress.report()
        by_outcome = _counter(metrics.CLEANING_ITEMS)
        for outcome, count in sorted(tally.items.items()):
            labels = ["committed", ""] if outcome == "committed" else ["rejected", outcome]
            by_outcome.add_metric(labels, count)
        yield by_outcome
        yield _counter(metrics.CLEANING_AUDIO_SECONDS, tally.audio_s)
        yield _counter(metrics.CLEANING_ITEMS_REDONE, tally.items_redone)
        yield _counter(metrics.CLEANING_LEASES_TAKEN_OVER, tally.leases_taken_over)
        yield _counter(metrics.CLEANING_LEASES_LOST, tally.leases_lost)
        yield _gauge(metrics.CLEANING_CHECKPOINT_AGE, tally.work_at_risk_s(now_s=time.monotonic()))
        yield _gauge(metrics.CLEANING_UNITS_TOTAL, report.units_total)
        yield _gauge(metrics.CLEANING_UNITS_COMMITTED, report.units_committed)


def registry_of(tally: Tally, progress: Progress) -> CollectorRegistry:
    """Return a registry that holds this worker's metrics."""
    registry = CollectorRegistry()
    registry.register(TallyCollector(tally, progress))
    return registry


def _counter(family: MetricFamily, value: float | None = None) -> CounterMetricFamily:
    return CounterMetricFamily(family.name, family.help, value=value, labels=family.labels or None)


def _gauge(family: MetricFamily, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(family.name, family.help, value=value)
