"""The records that flow through the steps: an item of the plan, its decoded clip, and what becomes of it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the status command and the tests of the protocol need no numpy
    import numpy as np
    from numpy.typing import NDArray


class Reason(StrEnum):
    """Why a recording is not worth training on. The values appear in reports and metrics."""

    UNREADABLE = "unreadable"
    CHANGED = "changed"
    EMPTY = "empty"
    NOT_AUDIO = "not_audio"
    CORRUPT = "corrupt"
    TRUNCATED = "truncated"
    NOT_FINITE = "not_finite"
    CHANNELS = "channels"
    SAMPLE_RATE = "sample_rate"
    TOO_SHORT = "too_short"
    TOO_LONG = "too_long"
    CLIPPED = "clipped"
    TOO_QUIET = "too_quiet"
    NO_SPEECH = "no_speech"
    CRASH = "crash"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One recording of the input, as it was when the plan was made.

    `content` is the sha256 of its bytes, or empty when it could not be read then; in a bucket it is the object's ETag.
    """

    id: str
    name: str
    content: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A stretch of speech."""

    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Clip:
    """Decoded sound and what the steps found out about it. Each step returns a copy that knows more."""

    samples: "NDArray[np.float32]"  # [samples], one channel, full scale is ±1
    sample_rate_hz: int
    source_channels: int
    clipped_ratio: float = 0.0
    loudness_lufs: float = float("-inf")
    speech: tuple[Segment, ...] = ()

    @property
    def duration_s(self) -> float:
        """Length of the sound."""
        return len(self.samples) / self.sample_rate_hz


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject:
    """A step turned the recording down. `detail` holds the measured value and the bound."""

    reason: Reason
    detail: str
    duration_s: float = 0.0
    """Length of the sound as far as it was decoded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """A recording that passed every step, ready for a shard. `metadata_json` is one JSON object."""

    metadata_json: str
    flac: bytes
    duration_s: float
