"""Contract records → Prometheus objects, and what each tick says to them and to the log."""

from collections.abc import Mapping
from typing import Final, assert_never

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from fish_contracts import metrics
from fish_contracts.metrics import MetricFamily
from fish_operator.fill import exit_code
from fish_operator.plan import (
    EngineFailed,
    Event,
    GpuState,
    Plan,
    ReclaimDone,
    ScaleDecided,
    WorkerEnded,
    WriteDeploymentStatus,
)
from fish_operator.status import DeploymentStatus, JobStatus, ReclaimStages, timestamp
from fish_operator.view import ObjectKey

_log = structlog.get_logger("fish_operator.decide")

_STAGES: Final = tuple(ReclaimStages.__dataclass_fields__)


class Telemetry:
    """All series of the operator, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._gpu_seconds = self._counter(metrics.GPU_STATE_SECONDS)
        self._decisions = self._counter(metrics.SCALE_DECISIONS)
        self._evictions = self._counter(metrics.EVICTIONS)
        self._reclaim_s = self._histogram(metrics.RECLAIM_SECONDS)
        self._active = self._gauge(metrics.STREAMS_ACTIVE)
        self._queued = self._gauge(metrics.STREAMS_QUEUED)
        self._replicas = self._gauge(metrics.REPLICAS)
        self._workers = self._gauge(metrics.FILL_WORKERS)
        self._engine_failures = self._counter(metrics.ENGINE_FAILURES)
        self.tick_s = self._histogram(metrics.TICK_SECONDS)
        self.tick_failures = self._counter(metrics.TICK_FAILURES)
        self._unread = self._counter(metrics.LOAD_READ_FAILURES)
        self._action_failures = self._counter(metrics.ACTION_FAILURES)
        self._gpus: Mapping[GpuState, int] = {}
        self._gpus_at_s: float | None = None
        for state in GpuState:
            self._gpu_seconds.labels(state)
        for direction in ("up", "down"):
            self._decisions.labels(direction)

    def _counter(self, family: MetricFamily) -> Counter:
        return Counter(family.name, family.help, family.labels, registry=self.registry)

    def _gauge(self, family: MetricFamily) -> Gauge:
        return Gauge(family.name, family.help, family.labels, registry=self.registry)

    def _histogram(self, family: MetricFamily) -> Histogram:
        return Histogram(family.name, family.help, family.labels, registry=self.registry, buckets=family.buckets)

    def page(self) -> bytes:
        """Return everything in Prometheus' text format."""
        return generate_latest(self.registry)

    def count_action_failure(self, action: str) -> None:
        """Count a write that failed."""
        self._action_failures.labels(action).inc()

    def record(self, plan: Plan, *, monotonic_s: float) -> None:
        """Take in one tick."""
        self._integrate(plan.gpu_states, monotonic_s)
        self._unread.inc(plan.unread_metrics)
        for gauge in (self._active, self._queued, self._replicas, self._workers):
            gauge.clear()  # what was deleted must not keep its last value
        for action in plan.statuses:
            if isinstance(action, WriteDeploymentStatus):
                self._show_deployment(action.key, action.status)
            else:
                self._show_job(action.key, action.status)
        for event in plan.events:
            self._count(event)
            _tell(event)

    def _integrate(self, gpus: Mapping[GpuState, int], monotonic_s: float) -> None:
        """Charge the time since the last look to the states seen then, so that each moment is charged once."""
        if self._gpus_at_s is not None:
            for state, number in self._gpus.items():
                self._gpu_seconds.labels(state).inc(number * (monotonic_s - self._gpus_at_s))
        self._gpus, self._gpus_at_s = gpus, monotonic_s

    def _show_deployment(self, key: ObjectKey, status: DeploymentStatus) -> None:
        labels = (key.namespace, key.name)
        if status.load:
            self._active.labels(*labels).set(status.load.streams)
            self._queued.labels(*labels).set(status.load.queued)
        self._replicas.labels(*labels, "desired").set(status.desired_replicas or 0)
        self._replicas.labels(*labels, "ready").set(status.ready_replicas)
        self._replicas.labels(*labels, "pending").set(status.pending_replicas)
        self._replicas.labels(*labels, "draining").set(status.draining_replicas)

    def _show_job(self, key: ObjectKey, status: JobStatus) -> None:
        labels = (key.namespace, key.name)
        self._workers.labels(*labels, "desired").set(status.workers.desired)
        self._workers.labels(*labels, "running").set(status.workers.running)
        self._workers.labels(*labels, "evicting").set(status.workers.evicting)

    def _count(self, event: Event) -> None:
        match event:
            case ScaleDecided():
                self._decisions.labels("up" if event.after > event.before else "down").inc()
            case WorkerEnded():
                if event.outcome in {"checkpointed", "forced"}:
                    self._evictions.labels(event.cause, event.outcome).inc()
            case EngineFailed():
                self._engine_failures.inc()
            case ReclaimDone():
                for stage in _STAGES:
                    self._reclaim_s.labels(stage).observe(getattr(event.entry.stages, stage))
                self._reclaim_s.labels("total").observe(event.entry.total_seconds)
            case _:
                assert_never(event)


def _tell(event: Event) -> None:
    match event:
        case ScaleDecided():
            _log.info(
                "replicas decided",
                deployment=str(event.owner),
                before=event.before,
                after=event.after,
                reason=event.reason,
                why=event.message,
            )
        case WorkerEnded():
            _log.info(
                "worker ended",
                pod=str(event.pod.key),
                outcome=event.outcome,
                cause=event.cause,
                exit_code=exit_code(event),
            )
        case EngineFailed():
            code = event.pod.end.exit_code if event.pod.end else None
            retry_at = timestamp(event.retry_at_s)
            _log.warning("engine failed", pod=str(event.pod.key), exit_code=code, replaced_from=retry_at)
        case ReclaimDone():
            entry = event.entry
            _log.info("gpu reclaimed", pod=entry.pod, victim=entry.victim, total_s=entry.total_seconds)
        case _:
            assert_never(event)
