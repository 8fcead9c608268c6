"""Bytes of a recording → one channel of samples, or the reason why not."""

import io
import struct
from dataclasses import dataclass
from typing import Final

import numpy as np
import soundfile
from numpy.typing import NDArray

from fish_cleaning.clip import Clip, Reason, Reject

VERSION: Final = 1

_BLOCK_S: Final = 10.0  # one call into the decoder stays short, so that a stop request is seen in time
_WAV_LENGTH_UNKNOWN: Final = (0, 0xFFFFFFFF)  # written by programs that stream
_OGG_END_OF_STREAM: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeConfig:
    """Which recordings are taken at all."""

    min_sample_rate_hz: int = 8_000
    max_sample_rate_hz: int = 192_000
    max_channels: int = 2
    min_duration_s: float = 1.0
    max_duration_s: float = 3600.0

    def __post_init__(self) -> None:
        """Refuse bounds that let nothing through."""
        if not 1 <= self.min_sample_rate_hz <= self.max_sample_rate_hz:
            raise ValueError(
                f"min_sample_rate_hz {self.min_sample_rate_hz} and max_sample_rate_hz {self.max_sample_rate_hz}: "
                "expected 1 <= min <= max"
            )
        if self.max_channels < 1:
            raise ValueError(f"max_channels {self.max_channels}: expected at least 1")
        # Loudness is measured over blocks of 0.4 s.
        if not 0.4 <= self.min_duration_s <= self.max_duration_s:
            raise ValueError(
                f"min_duration_s {self.min_duration_s} and max_duration_s {self.max_duration_s}: expected 0.4 <= min <= max"
            )


def decode(recording: bytes, config: DecodeConfig) -> Clip | Reject:
    """Decode a recording and mix its channels into one."""
    if not recording:
        return Reject(reason=Reason.EMPTY, detail="0 bytes")
    try:
        with soundfile.SoundFile(io.BytesIO(recording)) as file:
            refusal = _refusal(file, config)
            if refusal:
                return refusal
            channels = _read(file)  # [samples, channels]
            promised_samples, rate_hz = file.frames, file.samplerate
    except soundfile.LibsndfileError as error:
        return Reject(reason=Reason.NOT_AUDIO, detail=str(error.error_string))
    shortfall = _truncation(recording, decoded_samples=len(channels), promised_samples=promised_samples)
    if shortfall:
        return Reject(reason=Reason.TRUNCATED, detail=shortfall)
    return _mixed(channels, rate_hz)


def _mixed(channels: NDArray[np.float32], rate_hz: int) -> Clip | Reject:
    if len(channels) == 0:
        return Reject(reason=Reason.EMPTY, detail="no samples")
    if not np.isfinite(channels).all():
        return Reject(reason=Reason.NOT_FINITE, detail=f"{np.count_nonzero(~np.isfinite(channels))} samples")
    mono = channels.mean(axis=1, dtype=np.float32)
    return Clip(samples=mono, sample_rate_hz=rate_hz, source_channels=channels.shape[1])


def _refusal(file: soundfile.SoundFile, config: DecodeConfig) -> Reject | None:
    """Judge by the header alone, before the cost of decoding."""
    rate_hz, channels, duration_s = file.samplerate, file.channels, file.frames / max(1, file.samplerate)
    if not config.min_sample_rate_hz <= rate_hz <= config.max_sample_rate_hz:
        detail = f"{rate_hz} Hz, accepted {config.min_sample_rate_hz} to {config.max_sample_rate_hz}"
        return Reject(reason=Reason.SAMPLE_RATE, detail=detail)
    if channels > config.max_channels:
        return Reject(reason=Reason.CHANNELS, detail=f"{channels} channels, accepted up to {config.max_channels}")
    if duration_s > config.max_duration_s:
        return Reject(reason=Reason.TOO_LONG, detail=f"{duration_s:.1f} s, accepted up to {config.max_duration_s} s")
    if 0 < duration_s < config.min_duration_s:
        return Reject(reason=Reason.TOO_SHORT, detail=f"{duration_s:.2f} s, accepted from {config.min_duration_s} s")
    return None


def _read(file: soundfile.SoundFile) -> NDArray[np.float32]:
    block_samples = max(1, int(file.samplerate * _BLOCK_S))
    blocks = []
    while True:
        block = file.read(block_samples, dtype="float32", always_2d=True)
        blocks.append(block)
        if len(block) < block_samples:
            return np.concatenate(blocks)


def _truncation(recording: bytes, *, decoded_samples: int, promised_samples: int) -> str:
    """Return what is missing at the end, or nothing.

    The decoder cannot be asked: a shortened WAV, Ogg or MP3 decodes without complaint to less sound.
    """
    if decoded_samples < promised_samples:
        return f"{decoded_samples} of {promised_samples} samples"
    if recording[:4] == b"RIFF" and len(recording) >= 8:
        (promised_bytes,) = struct.unpack_from("<I", recording, 4)
        if promised_bytes not in _WAV_LENGTH_UNKNOWN and len(recording) < promised_bytes + 8:
            return f"{len(recording)} of {promised_bytes + 8} bytes"
    if recording[:4] == b"OggS":
        last_page = recording.rfind(b"OggS")
        is_closed = len(recording) > last_page + 5 and recording[last_page + 5] & _OGG_END_OF_STREAM
        if not is_closed:
            return "the stream has no end mark"
    return ""
