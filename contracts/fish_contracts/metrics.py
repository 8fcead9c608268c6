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
TTS_FIRST_AUDIO_SECONDS: Final = MetricFamily(
    name="fish_tts_ttfa_seconds",
    kind="histogram",
    help="Time from a request's arrival to the first of its audio on the way to the client, header not counted.",
    labels=("route",),
    buckets=LATENCY_BUCKETS_S,
)
TTS_REAL_TIME_FACTOR: Final = MetricFamily(
    name="fish_tts_rtf",
    kind="histogram",
    help="Time that a whole request took, divided by the length of its audio.",
    labels=("route",),
    buckets=(0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 5.0),
)
TTS_AUDIO_SECONDS: Final = MetricFamily(
    name="fish_tts_audio_seconds_total", kind="counter", help="Seconds of audio made, for all streams together."
)
TTS_FRAMES: Final = MetricFamily(
    name="fish_tts_frames_total", kind="counter", help="Frames drawn by the model, end marks not counted."
)
TTS_PREFILL_POSITIONS: Final = MetricFamily(
    name="fish_tts_prefill_tokens_total",
    kind="counter",
    help="Prompt positions computed, those after a preemption included.",
)
TTS_STEP_SECONDS: Final = MetricFamily(
    name="fish_tts_step_seconds",
    kind="histogram",
    help="Time of one step of the model for a whole batch, the codec not counted.",
    buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.046, 0.07, 0.1, 0.2, 0.5, 1.0),
)
TTS_CODEC_SECONDS: Final = MetricFamily(
    name="fish_tts_codec_seconds",
    kind="histogram",
    help="Time of one decode of frames to samples, for all streams that were due.",
    buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
)
TTS_BATCH_SIZE: Final = MetricFamily(
    name="fish_tts_batch_size",
    kind="histogram",
    help="Streams that advanced in one step.",
    buckets=(1, 2, 4, 8, 16, 32, 48, 64, 128, 256),
)
TTS_QUEUE_WAIT_SECONDS: Final = MetricFamily(
    name="fish_tts_queue_wait_seconds",
    kind="histogram",
    help="Time from a request's arrival to its place in the batch.",
    buckets=(0.001, *LATENCY_BUCKETS_S, 60.0),
)
TTS_ACTIVE_STREAMS: Final = MetricFamily(
    name="fish_tts_active_streams", kind="gauge", help="Streams that have a place in the batch."
)
TTS_QUEUED_STREAMS: Final = MetricFamily(
    name="fish_tts_queue_depth", kind="gauge", help="Streams that wait for a place in the batch."
)
TTS_REJECTED: Final = MetricFamily(
    name="fish_tts_rejected_total",
    kind="counter",
    help="Requests turned away before their first byte, by reason (bad_request, overloaded, draining, failed).",
    labels=("reason",),
)
TTS_FINISHED: Final = MetricFamily(
    name="fish_tts_finish_total",
    kind="counter",
    help="Streams that came to their end, by reason (end: the model said so; length: the frame limit; failed).",
    labels=("reason",),
)
TTS_CANCELLED: Final = MetricFamily(
    name="fish_tts_cancelled_total",
    kind="counter",
    help="Streams whose client left, by phase (before or after the first audio).",
    labels=("phase",),
)
TTS_PREEMPTED: Final = MetricFamily(
    name="fish_tts_preempted_total",
    kind="counter",
    help="Times that a stream gave up its cache blocks and waited again.",
)
TTS_CACHE_BLOCKS_USED: Final = MetricFamily(
    name="fish_tts_kv_blocks_used", kind="gauge", help="Blocks of the key-value cache that streams hold."
)
TTS_CACHE_BLOCKS: Final = MetricFamily(
    name="fish_tts_kv_blocks", kind="gauge", help="Blocks of the key-value cache in all."
)
# --- operator -------------------------------------------------------------------------------------------------------
GPU_STATE_SECONDS: Final = MetricFamily(
    name="fish_gpu_state_seconds_total",
    kind="counter",
    help="GPU-seconds in each state; over all states they add up to GPUs times time.",
    labels=("state",),
)
SCALE_DECISIONS: Final = MetricFamily(
    name="fish_scale_decisions_total",
    kind="counter",
    help="Changes of a deployment's number of replicas.",
    labels=("direction",),
)
EVICTIONS: Final = MetricFamily(
    name="fish_evictions_total",
    kind="counter",
    help="Fill workers that were made to stop, by who made them and how they took it.",
    labels=("cause", "outcome"),
)
RECLAIM_SECONDS: Final = MetricFamily(
    name="fish_reclaim_seconds",
    kind="histogram",
    help="Time that a GPU took from a fill worker to an engine, by stage; stage=total is load seen to engine ready.",
    labels=("stage",),
    buckets=RECLAIM_BUCKETS_S,
)
STREAMS_ACTIVE: Final = MetricFamily(
    name="fish_streams_active",
    kind="gauge",
    help="Streams that run, over the engines of a deployment that answered.",
    labels=("namespace", "deployment"),
)
STREAMS_QUEUED: Final = MetricFamily(
    name="fish_streams_queued",
    kind="gauge",
    help="Streams that wait for a place, over the engines of a deployment that answered.",
    labels=("namespace", "deployment"),
)
REPLICAS: Final = MetricFamily(
    name="fish_replicas",
    kind="gauge",
    help="Engines of a deployment: desired, ready, pending, draining.",
    labels=("namespace", "deployment", "state"),
)
FILL_WORKERS: Final = MetricFamily(
    name="fish_fill_workers",
    kind="gauge",
    help="Workers of a cleaning job: desired, running, evicting.",
    labels=("namespace", "job", "state"),
)
ENGINE_FAILURES: Final = MetricFamily(
    name="fish_engine_failures_total", kind="counter", help="Engines that ended though nobody asked them to."
)
TICK_SECONDS: Final = MetricFamily(
    name="fish_operator_tick_seconds",
    kind="histogram",
    help="Time of one round of the control loop: observe, decide, act.",
    labels=("step",),
    buckets=(0.001, 0.005, *LATENCY_BUCKETS_S),
)
TICK_FAILURES: Final = MetricFamily(
    name="fish_operator_tick_failures_total",
    kind="counter",
    help="Rounds of the control loop that ended with an error; the next one starts over.",
)
LOAD_READ_FAILURES: Final = MetricFamily(
    name="fish_load_read_failures_total",
    kind="counter",
    help="Engines that should have reported their load and did not, counted every round.",
)
ACTION_FAILURES: Final = MetricFamily(
    name="fish_operator_action_failures_total",
    kind="counter",
    help="Writes that the API server refused, by kind of action.",
    labels=("action",),
)
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
# --- slurm ----------------------------------------------------------------------------------------------------------
SLURM_GPUS: Final = MetricFamily(
    name="fish_slurm_gpus",
    kind="gauge",
    help="GPUs of the cleaning partition by what they do: a class of work, idle, out (free on a node that takes no work), "
    "or lost (Slurm counts them as used and no job has them).",
    labels=("state",),
)
SLURM_IDLE_GPU_SECONDS: Final = MetricFamily(
    name="fish_slurm_idle_gpu_seconds_total",
    kind="counter",
    help="GPU-seconds that nothing used while there was cleaning to do.",
)
SLURM_BACKLOG_WORKERS: Final = MetricFamily(
    name="fish_slurm_backlog_workers",
    kind="gauge",
    help="Workers that the cleaning jobs would still take, those that wait included.",
)
SLURM_DELAYED_JOBS: Final = MetricFamily(
    name="fish_slurm_delayed_jobs", kind="gauge", help="Requeued workers that wait for their begin time."
)
SLURM_RECLAIM_SECONDS: Final = MetricFamily(
    name="fish_slurm_reclaim_seconds",
    kind="histogram",
    help="Time from the submission of work that comes before cleaning to its start, while cleaning ran; in Slurm's whole seconds.",
    buckets=RECLAIM_BUCKETS_S,
)
SLURM_REFILL_SECONDS: Final = MetricFamily(
    name="fish_slurm_refill_seconds",
    kind="histogram",
    help="Time for which GPUs were idle although there was cleaning to do, from the first look that saw it to the last.",
    buckets=RECLAIM_BUCKETS_S,
)
SLURM_CHECKPOINT_SECONDS: Final = MetricFamily(
    name="fish_slurm_checkpoint_seconds",
    kind="histogram",
    help="Time from SIGTERM until everything a worker had finished was safe, by its own word.",
    buckets=RECLAIM_BUCKETS_S,
)
SLURM_PREEMPTIONS: Final = MetricFamily(
    name="fish_slurm_preemptions_total", kind="counter", help="Times that a worker went back into the queue."
)
SLURM_SILENT_RUNS: Final = MetricFamily(
    name="fish_slurm_silent_runs_total",
    kind="counter",
    help="Runs that ended without a summary: killed before their checkpoint, or stopped in their first second.",
)
SLURM_RESTARTS_WITHOUT_PROGRESS: Final = MetricFamily(
    name="fish_slurm_restarts_without_progress",
    kind="gauge",
    help="Most runs in a row that a worker in the queue went through without finishing a recording.",
)
SLURM_OUT_NODES: Final = MetricFamily(
    name="fish_slurm_out_nodes",
    kind="gauge",
    help="Nodes that take no work, by reason (unkillable: a process survived its kill and may hold a GPU; other).",
    labels=("reason",),
)
SLURM_ACTIONS: Final = MetricFamily(
    name="fish_slurm_actions_total", kind="counter", help="What the filler did, by action.", labels=("action",)
)
SLURM_ERRORS: Final = MetricFamily(
    name="fish_slurm_errors_total",
    kind="counter",
    help="Calls that Slurm refused or did not answer, or in a form unknown.",
)
SLURM_LOOP_SECONDS: Final = MetricFamily(
    name="fish_slurm_loop_seconds",
    kind="histogram",
    help="Time of one round of the filler: observe, decide, act.",
    buckets=(0.001, 0.005, *LATENCY_BUCKETS_S),
)


def all_families() -> tuple[MetricFamily, ...]:
    """Return every family of this module, in order of definition."""
    return tuple(value for value in globals().values() if isinstance(value, MetricFamily))
