"""Reading the recording of a voice: any file that libsndfile knows → mono samples at the codec's rate, or a clear refusal."""

import io
from typing import Final, cast

import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

from fish_engine.errors import BadRequest

MIN_REFERENCE_S: Final = 0.5
MAX_REFERENCE_S: Final = 90.0
"""Longer references fill the model's context and gain nothing; 10 to 30 seconds are best."""
SILENCE_PEAK: Final = 10 ** (-60 / 20)
"""A reference that never gets louder than -60 dBFS has no voice in it."""


def read_reference(data: bytes, *, sample_rate_hz: int) -> NDArray[np.float32]:
    """Return the samples of a reference recording, its channels averaged and its rate converted.

    Raises:
        BadRequest: not audio, too short, too long, silent, or not finite; the message is meant for the client.
    """
    samples, rate_hz = _decoded(data)
    if not np.isfinite(samples).all():
        raise BadRequest("reference audio holds samples that are not finite numbers")
    if np.abs(samples).max() < SILENCE_PEAK:
        raise BadRequest("reference audio is silent: nothing in it is louder than -60 dBFS")
    mono: NDArray[np.float32] = samples.mean(axis=1, dtype=np.float32)
    if rate_hz == sample_rate_hz:
        return mono
    return cast(NDArray[np.float32], soxr.resample(mono, rate_hz, sample_rate_hz))


def _decoded(data: bytes) -> tuple[NDArray[np.float32], int]:
    """Return samples [n, channels] and their rate; the length is checked before anything is decoded."""
    try:
        with soundfile.SoundFile(io.BytesIO(data)) as file:
            duration_s = file.frames / file.samplerate
            if not MIN_REFERENCE_S <= duration_s <= MAX_REFERENCE_S:
                raise BadRequest(
                    f"reference audio lasts {duration_s:.2f} s; expected from {MIN_REFERENCE_S:g} to {MAX_REFERENCE_S:g} s"
                )
            return file.read(dtype="float32", always_2d=True), file.samplerate
    except soundfile.LibsndfileError as error:
        raise BadRequest(
            f"reference audio ({len(data)} bytes) cannot be read: {error.error_string.rstrip('.')}; "
            "expected WAV, FLAC, MP3 or Ogg"
        ) from error
