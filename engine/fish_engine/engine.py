"""The loop's one turn: plan, run, commit, speak.

add ──► scheduler.plan ──► runner.run ──► scheduler.commit ──► codec ──► on_event
             ▲                                    │
             └──────────── next step ─────────────┘
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from torch import Tensor, stack

from fish_engine.batch import Utterance
from fish_engine.codec.stream import ChunkPolicy, StreamView, client_lead_s, plan_chunks
from fish_engine.codec.streaming import StreamingDecoder
from fish_engine.model.sampling import SamplingParams
from fish_engine.request import FinishReason, Request
from fish_engine.runner import Runner
from fish_engine.scheduler import Scheduler, StepPlan
from fish_engine.telemetry import EngineMetrics

CODEC_SLOTS_PER_STREAM: Final = 2
"""A stream may have sound left to make when its place in the batch is already another's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speech:
    """What a client wants said: a prompt, how to draw, and at most how many frames."""

    prompt: Tensor  # [T, 1 + codebooks] int64
    sampling: SamplingParams
    frame_limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Audio:
    """The next samples of a stream, float32 in -1 .. 1."""

    samples: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The stream has ended; nothing follows."""

    reason: FinishReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The stream was given up; nothing follows."""

    message: str


Event = Audio | Finished | Failed


@dataclass(slots=True, kw_only=True)
class _Stream:
    """One request from its admission to its last sample."""

    utterance: Utterance
    on_event: Callable[[Event], None]
    added_at_s: float
    is_admitted: bool = False
    slot: int | None = None
    """Place in the codec; taken with the first frame."""
    pending: list[Tensor] = field(default_factory=list)
    """Codes [codebooks] of frames that are not sound yet."""
    finish_reason: FinishReason | None = None
    first_sent_at_s: float | None = None
    sound_sent_s: float = 0.0


class Engine:
    """Many utterances, advancing together."""

    def __init__(
        self,
        *,
        scheduler: Scheduler,
        runner: Runner,
        decoder: StreamingDecoder,
        metrics: EngineMetrics,
        chunks: ChunkPolicy | None = None,
    ) -> None:
        self._scheduler = scheduler
        self._runner = runner
        self._decoder = decoder
        self._metrics = metrics
        self._chunks = chunks or ChunkPolicy()
        self._streams: dict[int, _Stream] = {}
        metrics.cache_blocks.set(scheduler.pool.total)

    @property
    def is_idle(self) -> bool:
        """Nothing to do until a request is added."""
        return not self._streams

    @property
    def running_count(self) -> int:
        """Streams that have a place in the batch."""
        return self._scheduler.running_count

    def fits(self, speech: Speech) -> bool:
        """Tell whether the cache can hold this request when it runs alone. Reads constants only: safe from any thread."""
        return self._scheduler.fits(_request(0, speech))

    def add(self, request_id: int, speech: Speech, on_event: Callable[[Event], None]) -> None:
        """Let a request that fits wait for its turn; ids must grow. `on_event` is called from `step` and must not block."""
        self._scheduler.add(_request(request_id, speech))
        utterance = Utterance(prompt=speech.prompt, frame_limit=speech.frame_limit, sampling=speech.sampling)
        self._streams[request_id] = _Stream(utterance=utterance, on_event=on_event, added_at_s=time.monotonic())

    def remove(self, request_id: int) -> None:
        """Give up a request and free all it holds; nothing happens where it has ended already."""
        stream = self._streams.pop(request_id, None)
        if stream is None:
            return
        self._scheduler.remove(request_id)
        if stream.slot is not None:
            self._decoder.close(stream.slot)

    def step(self) -> None:
        """Advance every running request by one frame, and send what has become sound."""
        started_at_s = time.monotonic()
        plan = self._scheduler.plan()
        if not plan.is_empty:
            self._observe_admissions(plan, started_at_s)
            work = (*plan.prefills, *plan.decodes)
            utterances = {item.request_id: self._streams[item.request_id].utterance for item in work}
            columns = self._runner.run(plan, utterances)
            self._commit(plan, columns)
            self._observe_step(plan, time.monotonic() - started_at_s)
        self._speak()
        self._metrics.cache_blocks_used.set(self._scheduler.pool.used_count)

    def fail_all(self, message: str) -> None:
        """Give up every request and tell each."""
        for request_id, stream in list(self._streams.items()):
            self.remove(request_id)
            stream.on_event(Failed(message=message))

    def _commit(self, plan: StepPlan, columns: Mapping[int, Tensor]) -> None:
        end_id = self._runner.model.im_end_id
        is_end = {request_id: int(column[0]) == end_id for request_id, column in columns.items()}
        for request_id, column in columns.items():
            if not is_end[request_id]:
                self._take_frame(self._streams[request_id], column)
        for request_id, reason in self._scheduler.commit(plan, is_end).items():
            self._streams[request_id].finish_reason = reason

    def _take_frame(self, stream: _Stream, column: Tensor) -> None:
        if stream.slot is None:
            stream.slot = self._decoder.open()
        stream.utterance.add(column)
        stream.pending.append(column[1:])
        self._metrics.frames.inc()

    def _speak(self) -> None:
        """Decode what is due, send it, and end the streams that have nothing left."""
        started_at_s = time.monotonic()
        by_slot = {stream.slot: stream for stream in self._streams.values() if stream.slot is not None}
        views = [self._view(slot, stream, started_at_s) for slot, stream in by_slot.items()]
        due = {chunk.slot: chunk.frames for chunk in plan_chunks(views, self._chunks)}
        if due:
            codes = {slot: stack(by_slot[slot].pending[:frames], dim=1) for slot, frames in due.items()}
            for slot, samples in self._decoder.decode(codes).items():
                del by_slot[slot].pending[: due[slot]]
                self._send(by_slot[slot], samples)
            self._metrics.codec_s.observe(time.monotonic() - started_at_s)
        for request_id, stream in list(self._streams.items()):
            if stream.finish_reason is not None and not stream.pending:
                self.remove(request_id)
                self._metrics.finished.labels(stream.finish_reason.value).inc()
                stream.on_event(Finished(reason=stream.finish_reason))

    def _view(self, slot: int, stream: _Stream, now_s: float) -> StreamView:
        return StreamView(
            slot=slot,
            frames_pending=len(stream.pending),
            frames_decoded=self._decoder.frames_decoded(slot),
            is_finished=stream.finish_reason is not None,
            lead_s=client_lead_s(sound_sent_s=stream.sound_sent_s, first_sent_at_s=stream.first_sent_at_s, now_s=now_s),
        )

    def _send(self, stream: _Stream, samples: Tensor) -> None:
        sound_s = len(samples) / self._decoder.codec.config.sample_rate_hz
        if stream.first_sent_at_s is None:
            stream.first_sent_at_s = time.monotonic()
        stream.sound_sent_s += sound_s
        self._metrics.audio_s.inc(sound_s)
        stream.on_event(Audio(samples=samples))

    def _observe_admissions(self, plan: StepPlan, now_s: float) -> None:
        for item in plan.prefills:
            stream = self._streams[item.request_id]
            if not stream.is_admitted:
                stream.is_admitted = True
                self._metrics.queue_wait_s.observe(now_s - stream.added_at_s)

    def _observe_step(self, plan: StepPlan, took_s: float) -> None:
        self._metrics.step_s.observe(took_s)
        self._metrics.batch_size.observe(len(plan.prefills) + len(plan.decodes))
        self._metrics.prefill_positions.inc(sum(item.length for item in plan.prefills))
        self._metrics.preempted.inc(len(plan.preempted))


def _request(request_id: int, speech: Speech) -> Request:
    return Request(request_id=request_id, prompt_len=len(speech.prompt), frame_limit=speech.frame_limit)
