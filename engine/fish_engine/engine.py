"""The loop's one turn: plan, launch, commit, land, speak.

add ──► scheduler.plan ──► runner.launch ──► scheduler.commit ──► land ──► codec ──► on_event
             ▲                                     │
             └───────────── next step ─────────────┘

A plan is committed as soon as it is launched, as if no request ended with it. Where the runner looks ahead, the next step is
launched before the frames of the last one are read; a request that turns out to have ended takes part once more, for nothing.
"""

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from torch import Tensor, stack

from fish_engine.batch import Utterance
from fish_engine.codec.stream import ChunkPolicy, StreamView, client_lead_s, plan_chunks
from fish_engine.codec.streaming import Sound, StreamingDecoder
from fish_engine.model.dual_ar import DualAR
from fish_engine.model.sampling import SamplingParams
from fish_engine.request import FinishReason, Request
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
    codes: Tensor
    """All that was said, [codebooks, frames] int64: what comes next can be made to follow from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The stream was given up; nothing follows."""

    message: str


Event = Audio | Finished | Failed


class Flight(Protocol):
    """A step that has been launched."""

    def columns(self) -> Mapping[int, Tensor]:
        """Return the new column [1 + codebooks] of each request that drew a frame, on the host; wait for it if need be."""
        ...


class FrameRunner(Protocol):
    """What turns plans into frames."""

    @property
    def model(self) -> DualAR:
        """The model that speaks."""
        ...

    @property
    def lookahead(self) -> int:
        """Steps that may be launched before the frames of an earlier one are read."""
        ...

    def launch(self, plan: StepPlan, utterances: Mapping[int, Utterance]) -> Flight:
        """Start a step. The work of later ones comes after it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    """A step under way."""

    flight: Flight
    at_limit: Mapping[int, FinishReason]
    """Requests whose last frame this is, unless it is the end mark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chunks:
    """Sound under way."""

    sound: Sound
    requests: Mapping[int, int]
    """Whose chunk is in which slot."""


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
    chunks_under_way: int = 0
    """Chunks that are being decoded and have not been sent."""
    finish_reason: FinishReason | None = None
    first_sent_at_s: float | None = None
    sound_sent_s: float = 0.0


class Engine:
    """Many utterances, advancing together."""

    def __init__(
        self,
        *,
        scheduler: Scheduler,
        runner: FrameRunner,
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
        self._under_way: deque[_Step] = deque()
        self._sounding: list[_Chunks] = []
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
            flight = self._runner.launch(plan, utterances)
            at_limit = self._scheduler.commit(plan, {item.request_id: False for item in work if item.draws_frame})
            self._under_way.append(_Step(flight=flight, at_limit=at_limit))
        while len(self._under_way) > (0 if plan.is_empty else self._runner.lookahead):
            self._land(self._under_way.popleft())
        if not plan.is_empty:
            self._observe_step(plan, time.monotonic() - started_at_s)
        self._speak()
        self._metrics.cache_blocks_used.set(self._scheduler.pool.used_count)

    def fail_all(self, message: str) -> None:
        """Give up every request and tell each."""
        for request_id, stream in list(self._streams.items()):
            self.remove(request_id)
            stream.on_event(Failed(message=message))

    def _land(self, step: _Step) -> None:
        """Take the frames of a step, those of requests that have gone or ended meanwhile aside."""
        end_id = self._runner.model.im_end_id
        for request_id, column in step.flight.columns().items():
            stream = self._streams.get(request_id)
            if stream is None or stream.finish_reason is not None:
                continue
            if int(column[0]) == end_id:
                self._scheduler.remove(request_id)
                stream.finish_reason = FinishReason.END
                continue
            self._take_frame(stream, column)
            stream.finish_reason = step.at_limit.get(request_id)

    def _take_frame(self, stream: _Stream, column: Tensor) -> None:
        if stream.slot is None:
            stream.slot = self._decoder.open()
        stream.utterance.add(column)
        stream.pending.append(column[1:])
        self._metrics.frames.inc()

    def _speak(self) -> None:
        """Decode what is due, send what has become sound, and end the streams that have nothing left."""
        started_at_s = time.monotonic()
        earlier, self._sounding = self._sounding, []
        self._decode_due(started_at_s)
        if not self._decoder.has_latency:
            earlier, self._sounding = self._sounding, []
        for chunks in earlier:
            self._send(chunks)
        for request_id, stream in list(self._streams.items()):
            if stream.finish_reason is not None and not stream.pending and not stream.chunks_under_way:
                self.remove(request_id)
                self._metrics.finished.labels(stream.finish_reason.value).inc()
                stream.on_event(Finished(reason=stream.finish_reason, codes=stream.utterance.codes()))

    def _decode_due(self, now_s: float) -> None:
        by_slot = {stream.slot: request_id for request_id, stream in self._streams.items() if stream.slot is not None}
        views = [self._view(slot, self._streams[request_id], now_s) for slot, request_id in by_slot.items()]
        due = {chunk.slot: chunk.frames for chunk in plan_chunks(views, self._chunks)}
        if not due:
            return
        codes = {slot: stack(self._streams[by_slot[slot]].pending[:frames], dim=1) for slot, frames in due.items()}
        self._sounding.append(_Chunks(sound=self._decoder.launch(codes), requests=by_slot))
        for slot, frames in due.items():
            stream = self._streams[by_slot[slot]]
            del stream.pending[:frames]
            stream.chunks_under_way += 1
        self._metrics.codec_s.observe(time.monotonic() - now_s)

    def _view(self, slot: int, stream: _Stream, now_s: float) -> StreamView:
        return StreamView(
            slot=slot,
            frames_pending=len(stream.pending),
            frames_decoded=self._decoder.frames_decoded(slot),
            is_finished=stream.finish_reason is not None,
            lead_s=client_lead_s(sound_sent_s=stream.sound_sent_s, first_sent_at_s=stream.first_sent_at_s, now_s=now_s),
        )

    def _send(self, chunks: _Chunks) -> None:
        for slot, samples in chunks.sound.samples().items():
            stream = self._streams.get(chunks.requests[slot])
            if stream is None:
                continue
            sound_s = len(samples) / self._decoder.codec.config.sample_rate_hz
            if stream.first_sent_at_s is None:
                stream.first_sent_at_s = time.monotonic()
            stream.chunks_under_way -= 1
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
