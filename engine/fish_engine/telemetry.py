"""The engine's metric families, as Prometheus objects in a registry of their own."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from fish_contracts import metrics as families
from fish_contracts.metrics import MetricFamily


class EngineMetrics:
    """One object for each family; whoever knows a number writes it here."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.first_audio_s = self._histogram(families.TTS_FIRST_AUDIO_SECONDS)
        self.real_time_factor = self._histogram(families.TTS_REAL_TIME_FACTOR)
        self.audio_s = self._counter(families.TTS_AUDIO_SECONDS)
        self.frames = self._counter(families.TTS_FRAMES)
        self.prefill_positions = self._counter(families.TTS_PREFILL_POSITIONS)
        self.step_s = self._histogram(families.TTS_STEP_SECONDS)
        self.codec_s = self._histogram(families.TTS_CODEC_SECONDS)
        self.batch_size = self._histogram(families.TTS_BATCH_SIZE)
        self.queue_wait_s = self._histogram(families.TTS_QUEUE_WAIT_SECONDS)
        self.active_streams = self._gauge(families.TTS_ACTIVE_STREAMS)
        self.queued_streams = self._gauge(families.TTS_QUEUED_STREAMS)
        self.rejected = self._counter(families.TTS_REJECTED)
        self.finished = self._counter(families.TTS_FINISHED)
        self.cancelled = self._counter(families.TTS_CANCELLED)
        self.preempted = self._counter(families.TTS_PREEMPTED)
        self.cache_blocks_used = self._gauge(families.TTS_CACHE_BLOCKS_USED)
        self.cache_blocks = self._gauge(families.TTS_CACHE_BLOCKS)

    def _counter(self, family: MetricFamily) -> Counter:
        return Counter(family.name, family.help, family.labels, registry=self.registry)

    def _gauge(self, family: MetricFamily) -> Gauge:
        return Gauge(family.name, family.help, family.labels, registry=self.registry)

    def _histogram(self, family: MetricFamily) -> Histogram:
        return Histogram(family.name, family.help, family.labels, buckets=family.buckets, registry=self.registry)
