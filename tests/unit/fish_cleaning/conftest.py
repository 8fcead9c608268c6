"""Real speech, and recordings made of it with faults that are known exactly."""

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray

from fish_cleaning.clip import Clip

Samples = NDArray[np.float32]
LIBRIVOX = Path(__file__).parents[2] / "data" / "librivox"
RATE_HZ = 16_000


@pytest.fixture(scope="session")
def speech_folder() -> Path:
    """Return the folder of clean recordings."""
    return LIBRIVOX


@pytest.fixture(scope="session")
def speech() -> Samples:
    """Return seven seconds of a person reading, [samples] at 16 kHz."""
    samples, rate_hz = soundfile.read(LIBRIVOX / "sense_and_sensibility_01_austen_64kb-0870.wav", dtype="float32")
    assert rate_hz == RATE_HZ
    return samples


@pytest.fixture(scope="session")
def encoded() -> Callable[..., bytes]:
    """Return a function (samples, rate_hz, format, subtype) → the bytes of a file."""

    def encode(samples: Samples, rate_hz: int = RATE_HZ, format: str = "WAV", subtype: str = "PCM_16") -> bytes:  # noqa: A002
        target = io.BytesIO()
        soundfile.write(target, samples, rate_hz, format=format, subtype=subtype)
        return target.getvalue()

    return encode


@pytest.fixture(scope="session")
def clip_of() -> Callable[[Samples], Clip]:
    """Return a function that makes a clip of samples at 16 kHz."""
    return lambda samples: Clip(samples=samples.astype(np.float32), sample_rate_hz=RATE_HZ, source_channels=1)
