"""Where in a recording somebody speaks: silero's voice activity model, a block of frames a call."""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from fish_cleaning.clip import Clip, Reason, Reject, Segment

if TYPE_CHECKING:
    import onnxruntime

VERSION: Final = 1

MODEL_RATE_HZ: Final = 16_000
FRAME_SAMPLES: Final = 512
_CONTEXT_SAMPLES: Final = 64  # each frame is shown with the end of the one before
_FRAMES_PER_CALL: Final = 128  # 4 s of sound, 7 ms of one core: a stop request is seen in time on a crowded host too
_RESAMPLED_PER_CALL_S: Final = 60.0
_FRAME_S: Final = FRAME_SAMPLES / MODEL_RATE_HZ


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechConfig:
    """What counts as speech, and how much of it a recording needs."""

    start_probability: float = 0.5
    stop_probability: float = 0.35
    min_segment_s: float = 0.25
    min_pause_s: float = 0.3
    padding_s: float = 0.1
    min_speech_ratio: float = 0.2

    def __post_init__(self) -> None:
        """Refuse thresholds that never switch."""
        if not 0 < self.stop_probability <= self.start_probability < 1:
            raise ValueError(
                f"stop_probability {self.stop_probability} and start_probability {self.start_probability}: "
                "expected 0 < stop <= start < 1"
            )
        if not 0 <= self.min_speech_ratio <= 1:
            raise ValueError(f"min_speech_ratio {self.min_speech_ratio}: expected a share from 0 to 1")
        if min(self.min_segment_s, self.min_pause_s, self.padding_s) < 0:
            raise ValueError(
                f"min_segment_s {self.min_segment_s}, min_pause_s {self.min_pause_s}, padding_s {self.padding_s}: "
                "expected no negative length"
            )


def find_speech(clip: Clip, config: SpeechConfig) -> Clip | Reject:
    """Find the stretches of speech and turn down a recording that has too little."""
    segments = segments_of(frame_probabilities(_at_model_rate(clip)), duration_s=clip.duration_s, config=config)
    ratio = sum(segment.end_s - segment.start_s for segment in segments) / clip.duration_s
    if not segments or ratio < config.min_speech_ratio:
        detail = f"{ratio:.1%} is speech, accepted from {config.min_speech_ratio:.1%}"
        return Reject(reason=Reason.NO_SPEECH, detail=detail)
    return replace(clip, speech=segments)


def segments_of(probabilities: Sequence[float], *, duration_s: float, config: SpeechConfig) -> tuple[Segment, ...]:
    """Turn frame probabilities into segments: switch with hysteresis, bridge short pauses, drop blips, pad, clamp."""
    merged: list[Segment] = []
    for run in _runs(probabilities, config):
        if merged and run.start_s - merged[-1].end_s < config.min_pause_s:
            merged[-1] = Segment(start_s=merged[-1].start_s, end_s=run.end_s)
        else:
            merged.append(run)
    return tuple(
        Segment(
            start_s=round(max(0.0, run.start_s - config.padding_s), 3),
            end_s=round(min(duration_s, run.end_s + config.padding_s), 3),
        )
        for run in merged
        if run.end_s - run.start_s >= config.min_segment_s
    )


def _runs(probabilities: Sequence[float], config: SpeechConfig) -> Iterator[Segment]:
    start_s: float | None = None
    for frame, probability in enumerate(probabilities):
        if start_s is None and probability >= config.start_probability:
            start_s = frame * _FRAME_S
        elif start_s is not None and probability < config.stop_probability:
            yield Segment(start_s=start_s, end_s=frame * _FRAME_S)
            start_s = None
    if start_s is not None:
        yield Segment(start_s=start_s, end_s=len(probabilities) * _FRAME_S)


def frame_probabilities(samples: NDArray[np.float32]) -> list[float]:
    """Return the probability of speech for each 32 ms of 16 kHz sound."""
    frames = -(-len(samples) // FRAME_SAMPLES)
    padded = np.zeros(_CONTEXT_SAMPLES + frames * FRAME_SAMPLES, dtype=np.float32)
    padded[_CONTEXT_SAMPLES : _CONTEXT_SAMPLES + len(samples)] = samples
    windows = np.lib.stride_tricks.sliding_window_view(padded, _CONTEXT_SAMPLES + FRAME_SAMPLES)[::FRAME_SAMPLES]
    hidden = cell = np.zeros((1, 1, 128), dtype=np.float32)
    probabilities: list[float] = []
    for first in range(0, frames, _FRAMES_PER_CALL):
        block = np.ascontiguousarray(windows[first : first + _FRAMES_PER_CALL])  # [frames, 576]
        found, hidden, cell = model().run(None, {"input": block, "h": hidden, "c": cell})
        probabilities.extend(found.tolist())
    return probabilities


@functools.cache
def model() -> "onnxruntime.InferenceSession":
    """Return the model, loaded once a process and run on one thread: a worker must not spread over its host's cores."""
    import onnxruntime  # noqa: PLC0415 - 0.2 s that planning and checking do not pay

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False  # the arena grows with each new length and never shrinks
    weights = resources.files("fish_cleaning").joinpath("models/silero_vad_16k_sequence.onnx").read_bytes()
    return onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])


def _at_model_rate(clip: Clip) -> NDArray[np.float32]:
    if clip.sample_rate_hz == MODEL_RATE_HZ:
        return clip.samples
    import soxr  # noqa: PLC0415 - most corpora are at 16 kHz already

    stream = soxr.ResampleStream(clip.sample_rate_hz, MODEL_RATE_HZ, 1, dtype="float32")
    block_samples = int(_RESAMPLED_PER_CALL_S * clip.sample_rate_hz)
    firsts = range(0, len(clip.samples), block_samples)
    blocks = [
        stream.resample_chunk(clip.samples[first : first + block_samples], last=first == firsts[-1]) for first in firsts
    ]
    resampled: NDArray[np.float32] = np.concatenate(blocks)
    return resampled
