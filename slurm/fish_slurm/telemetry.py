"""The filler's numbers for Prometheus. Slurm's own times are whole seconds, and so are reclaim and refill here."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from fish_contracts import metrics
from fish_contracts.metrics import MetricFamily
from fish_contracts.priority import WorkClass, may_preempt
from fish_slurm.decide import Action, Limits, Plan, class_of
from fish_slurm.view import ClusterView, Job, Phase

_UNKILLABLE: Final = "Kill task failed"


class Telemetry:
    """Counts what the filler saw and did."""

    def __init__(self, registry: CollectorRegistry, limits: Limits) -> None:
        self._limits = limits
        self._last: ClusterView | None = None
        self._idle_since_s: float | None = None
        self._gpus = _gauge(metrics.SLURM_GPUS, registry)
        self._idle_gpu_seconds = _counter(metrics.SLURM_IDLE_GPU_SECONDS, registry)
        self._backlog = _gauge(metrics.SLURM_BACKLOG_WORKERS, registry)
        self._delayed = _gauge(metrics.SLURM_DELAYED_JOBS, registry)
        self._strikes = _gauge(metrics.SLURM_RESTARTS_WITHOUT_PROGRESS, registry)
        self._out_nodes = _gauge(metrics.SLURM_OUT_NODES, registry)
        self._preemptions = _counter(metrics.SLURM_PREEMPTIONS, registry)
        self._silent_runs = _counter(metrics.SLURM_SILENT_RUNS, registry)
        self._actions = _counter(metrics.SLURM_ACTIONS, registry)
        self._errors = _counter(metrics.SLURM_ERRORS, registry)
        self._reclaim = _histogram(metrics.SLURM_RECLAIM_SECONDS, registry)
        self._refill = _histogram(metrics.SLURM_REFILL_SECONDS, registry)
        self._checkpoint = _histogram(metrics.SLURM_CHECKPOINT_SECONDS, registry)
        self._loop = _histogram(metrics.SLURM_LOOP_SECONDS, registry)

    def saw(self, view: ClusterView, plan: Plan) -> None:
        """Note one look at the cluster and what was decided from it."""
        self._show_gpus(view, plan)
        self._backlog.set(plan.backlog_workers)
        self._delayed.set(sum(1 for job in view.jobs if job.label and job.is_delayed))
        self._strikes.set(max(plan.memory.strikes.values(), default=0))
        out = [node for node in view.nodes if not node.takes_work]
        self._out_nodes.labels(reason="unkillable").set(sum(1 for node in out if node.reason == _UNKILLABLE))
        self._out_nodes.labels(reason="other").set(sum(1 for node in out if node.reason != _UNKILLABLE))
        if self._last is not None:
            self._compare(self._last, view)
            self._follow_idleness(self._last.now_s, view.now_s, plan)
        self._last = view

    def did(self, action: Action) -> None:
        """Note an action that was asked of Slurm."""
        self._actions.labels(action=type(action).__name__).inc()

    def failed(self) -> None:
        """Note a call that Slurm refused or did not answer."""
        self._errors.inc()

    def looped(self, seconds: float) -> None:
        """Note how long one look and its actions took."""
        self._loop.observe(seconds)

    def _show_gpus(self, view: ClusterView, plan: Plan) -> None:
        used = dict.fromkeys(WorkClass, 0)
        for job in view.jobs:
            if job.phase is Phase.RUNNING:
                used[class_of(job, self._limits)] += job.gpus
        for work_class, gpus in used.items():
            self._gpus.labels(state=work_class.value).set(gpus)
        on_nodes = sum(node.used_gpus for node in view.nodes)
        self._gpus.labels(state="lost").set(max(0, on_nodes - sum(used.values())))
        self._gpus.labels(state="idle").set(sum(node.idle_gpus for node in view.nodes))
        self._gpus.labels(state="out").set(
            sum(max(0, node.gpus - node.used_gpus) for node in view.nodes if not node.takes_work)
        )

    def _compare(self, before: ClusterView, view: ClusterView) -> None:
        earlier = {job.job_id: job for job in before.jobs}
        cleaning_ran = any(job.label and job.phase is Phase.RUNNING for job in before.jobs)
        for job in view.jobs:
            was = earlier.get(job.job_id)
            if job.label:
                self._compare_worker(was, job, view)
            elif cleaning_ran and _has_just_started(was, job) and self._may_preempt_cleaning(job):
                self._reclaim.observe(max(0, (job.started_at_s or 0) - job.submitted_at_s))

    def _compare_worker(self, was: Job | None, job: Job, view: ClusterView) -> None:
        restarted = was is not None and job.restarts > was.restarts
        ended = job.phase is Phase.ENDED and was is not None and was.phase is not Phase.ENDED
        if restarted:
            self._preemptions.inc()
        if restarted or ended:
            summary = view.summaries.get((job.job_id, job.restarts - 1 if restarted else job.restarts))
            if summary is None:
                self._silent_runs.inc()
            elif summary.stop_s is not None:
                self._checkpoint.observe(summary.stop_s)

    def _may_preempt_cleaning(self, job: Job) -> bool:
        return may_preempt(class_of(job, self._limits), WorkClass.CLEANING)

    def _follow_idleness(self, before_s: float, now_s: float, plan: Plan) -> None:
        is_wasted = plan.idle_gpus > 0 and plan.backlog_workers > 0
        if is_wasted:
            self._idle_gpu_seconds.inc(plan.idle_gpus * (now_s - before_s))
            self._idle_since_s = self._idle_since_s or now_s
        elif self._idle_since_s is not None:
            self._refill.observe(now_s - self._idle_since_s)
            self._idle_since_s = None


def _has_just_started(was: Job | None, job: Job) -> bool:
    return job.phase is Phase.RUNNING and job.restarts == 0 and (was is None or was.phase is Phase.PENDING)


def _gauge(family: MetricFamily, registry: CollectorRegistry) -> Gauge:
    return Gauge(family.name, family.help, family.labels, registry=registry)


def _counter(family: MetricFamily, registry: CollectorRegistry) -> Counter:
    return Counter(family.name, family.help, family.labels, registry=registry)


def _histogram(family: MetricFamily, registry: CollectorRegistry) -> Histogram:
    return Histogram(family.name, family.help, family.labels, buckets=family.buckets, registry=registry)
