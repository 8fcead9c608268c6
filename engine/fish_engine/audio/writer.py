"""From the codec's samples to the bytes of one response: louder, faster, at another rate, encoded; each with its state kept."""

from dataclasses import dataclass
from typing import cast

import numpy as np
import soxr
from numpy.typing import NDArray

from fish_engine.audio.encode import encoder_for
from fish_engine.audio.formats import Encoding
from fish_engine.audio.stretch import TimeStretch

Samples = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sounding:
    """How a client wants its sound."""

    encoding: Encoding
    speed: float = 1.0
    gain: float = 1.0


class SoundWriter:
    """Writes one file."""

    def __init__(self, sounding: Sounding, *, source_rate_hz: int) -> None:
        self._gain = sounding.gain
        self._rate_hz = sounding.encoding.rate_hz
        self._stretch = TimeStretch(speed=sounding.speed, rate_hz=source_rate_hz) if sounding.speed != 1.0 else None
        self._resample = (
            soxr.ResampleStream(source_rate_hz, self._rate_hz, 1, dtype="float32")
            if self._rate_hz != source_rate_hz
            else None
        )
        self._encoder = encoder_for(sounding.encoding)
        self._samples_written = 0

    @property
    def sound_s(self) -> float:
        """Seconds of sound in the file so far."""
        return self._samples_written / self._rate_hz

    def write(self, samples: Samples) -> bytes:
        """Return what of the file these samples complete; it may be nothing yet."""
        samples = samples * np.float32(self._gain)
        if self._stretch is not None:
            samples = self._stretch.stretch(samples)
        return self._encoder.encode(self._resampled(samples, is_last=False))

    def finish(self) -> bytes:
        """Return the rest of the file."""
        rest = self._stretch.finish() if self._stretch is not None else np.zeros(0, np.float32)
        return self._encoder.encode(self._resampled(rest, is_last=True)) + self._encoder.finish()

    def _resampled(self, samples: Samples, *, is_last: bool) -> Samples:
        if self._resample is not None:
            samples = cast(Samples, self._resample.resample_chunk(samples, last=is_last))
        self._samples_written += len(samples)
        return samples
