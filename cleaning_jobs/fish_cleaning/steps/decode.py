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
# Where containers say how long they are: the field's form, its place, and the bytes in front that it does not count.
_LENGTH_FIELDS: Final = {
    b"RIFF": ("<I", 4, 8),  # WAV
    b"RF64": ("<Q", 20, 8),  # WAV beyond 4 GB
    b"riff": ("<Q", 16, 0),  # Wave64
    b"FORM": (">I", 4, 8),  # AIFF
}
_LENGTH_FIELDS_END: Final = 28
_LENGTH_UNKNOWN: Final = (0, 0xFFFFFFFF)  # written by programs that stream
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
    missing = _missing_bytes(recording)
    if missing:
        return Reject(reason=Reason.TRUNCATED, detail=missing)
    try:
        file = soundfile.SoundFile(io.BytesIO(recording))
    except soundfile.LibsndfileError as error:
        return Reject(reason=Reason.NOT_AUDIO, detail=str(error.error_string))
    with file:
        return _refusal(file, config) or _clip(file)


def _clip(file: soundfile.SoundFile) -> Clip | Reject:
    try:
        channels = _read(file)  # [samples, channels]
    except soundfile.LibsndfileError as error:
        return Reject(reason=Reason.CORRUPT, detail=str(error.error_string))
    if len(channels) < file.frames:
        return Reject(reason=Reason.TRUNCATED, detail=f"{len(channels)} of {file.frames} samples")
    if len(channels) == 0:
        return Reject(reason=Reason.EMPTY, detail="no samples")
    if not np.isfinite(channels).all():
        return Reject(reason=Reason.NOT_FINITE, detail=f"{np.count_nonzero(~np.isfinite(channels))} samples")
    mono = channels.mean(axis=1, dtype=np.float32)
    return Clip(samples=mono, sample_rate_hz=file.samplerate, source_channels=file.channels)


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


def _missing_bytes(recording: bytes) -> str:
    """Return what the container lacks at its end, or nothing.

    The decoder cannot be asked: a shortened WAV, AIFF or Ogg decodes without complaint to less sound.
    """
    magic = recording[:4]
    if magic in _LENGTH_FIELDS and len(recording) >= _LENGTH_FIELDS_END:
        form, position, header_bytes = _LENGTH_FIELDS[magic]
        (promised_bytes,) = struct.unpack_from(form, recording, position)
        if promised_bytes not in _LENGTH_UNKNOWN and len(recording) < promised_bytes + header_bytes:
            return f"{len(recording)} of {promised_bytes + header_bytes} bytes"
    if magic == b"OggS":
        last_page = recording.rfind(b"OggS")
        is_closed = len(recording) > last_page + 5 and recording[last_page + 5] & _OGG_END_OF_STREAM
        if not is_closed:
            return "the stream has no end mark"
    return ""
