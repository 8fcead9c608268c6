"""Samples to bytes: 16-bit PCM, and the WAV header in front of it."""

import struct
from typing import Final

import numpy as np
from numpy.typing import NDArray

HEADER_BYTES: Final = 44
STREAMED_DATA_BYTES: Final = 0xFFFFFF00
"""What a header says when the end is not known yet, as the hosted API does: players read on until the connection closes."""

_CHANNELS: Final = 1
_SAMPLE_BYTES: Final = 2


def pcm16(samples: NDArray[np.float32]) -> bytes:
    """Return little-endian 16-bit PCM of samples from -1 to 1.

    What is beyond is clipped, and what is not a number is silence: a fault upstream must not become a bang in someone's ear.
    There is no dither, so that equal samples are equal bytes.
    """
    steps = np.rint(np.clip(np.nan_to_num(samples), -1.0, 1.0) * 32767.0).astype("<i2")
    return bytes(steps.data)


def wav_header(*, sample_rate_hz: int, data_bytes: int | None) -> bytes:
    """Return the 44 bytes before mono 16-bit PCM: with true sizes, or for a stream (None) with a size no stream reaches.

    Nothing may follow the data: some players play trailing chunks as a click.
    """
    if sample_rate_hz < 1:
        raise ValueError(f"sample_rate_hz must be positive, found {sample_rate_hz}")
    data_bytes = STREAMED_DATA_BYTES if data_bytes is None else data_bytes
    if not 0 <= data_bytes <= STREAMED_DATA_BYTES:
        raise ValueError(f"a WAV file holds from 0 to {STREAMED_DATA_BYTES} bytes of sound, found {data_bytes}")
    frame_bytes = _CHANNELS * _SAMPLE_BYTES
    return struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        b"RIFF",
        data_bytes + HEADER_BYTES - 8,
        b"WAVE",
        b"fmt ",
        16,
        1,  # PCM
        _CHANNELS,
        sample_rate_hz,
        sample_rate_hz * frame_bytes,
        frame_bytes,
        8 * _SAMPLE_BYTES,
        b"data",
        data_bytes,
    )


def with_true_sizes(streamed: bytes) -> bytes:
    """Return a streamed file with the sizes that it turned out to have."""
    sizes = struct.pack("<I", len(streamed) - 8), struct.pack("<I", len(streamed) - HEADER_BYTES)
    return streamed[:4] + sizes[0] + streamed[8:40] + sizes[1] + streamed[HEADER_BYTES:]
