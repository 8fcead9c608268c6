"""Reference recordings: read whatever is sound, refuse the rest in words for the client."""

import io

import numpy as np
import pytest
import soundfile

from fish_engine.audio.reference import read_reference
from fish_engine.errors import BadRequest

RATE_HZ = 44_100


def tone(duration_s: float = 1.0, *, rate_hz: int = RATE_HZ, channels: int = 1) -> np.ndarray:
    """A 440 Hz tone [samples, channels] of half the full scale."""
    at_s = np.arange(int(duration_s * rate_hz)) / rate_hz
    return np.repeat(0.5 * np.sin(2 * np.pi * 440 * at_s)[:, None], channels, axis=1).astype(np.float32)


def encoded(samples: np.ndarray, *, rate_hz: int = RATE_HZ, kind: str = "WAV", subtype: str | None = None) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, samples, rate_hz, format=kind, subtype=subtype)
    return file.getvalue()


@pytest.mark.parametrize("kind", ["WAV", "FLAC", "OGG", "MP3"])
def test_every_common_container_is_read(kind: str) -> None:
    samples = read_reference(encoded(tone(), kind=kind), sample_rate_hz=RATE_HZ)
    assert samples.dtype == np.float32
    assert abs(len(samples) - RATE_HZ) < 2500  # encoders of MP3 fill their last frame
    assert 0.4 < np.abs(samples[1000:40_000]).max() < 0.6


def test_channels_are_averaged() -> None:
    stereo = tone(channels=2)
    stereo[:, 1] = 0
    samples = read_reference(encoded(stereo, subtype="FLOAT"), sample_rate_hz=RATE_HZ)
    np.testing.assert_allclose(samples, tone()[:, 0] / 2, atol=1e-6)


@pytest.mark.parametrize("rate_hz", [8000, 16_000, 24_000, 48_000])
def test_another_rate_is_converted(rate_hz: int) -> None:
    samples = read_reference(encoded(tone(rate_hz=rate_hz), rate_hz=rate_hz), sample_rate_hz=RATE_HZ)
    assert abs(len(samples) - RATE_HZ) <= 2
    middle = slice(RATE_HZ // 4, RATE_HZ // 2)
    np.testing.assert_allclose(samples[middle], tone()[middle, 0], atol=2e-3)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r"\(0 bytes\) cannot be read.*expected WAV, FLAC, MP3 or Ogg"),
        (b"this is no sound at all" * 100, "cannot be read"),
        (encoded(tone())[:20], "cannot be read"),
        (encoded(tone(0.1)), r"lasts 0\.10 s; expected from 0\.5 to 90 s"),
        (encoded(tone(91, rate_hz=8000), rate_hz=8000), r"lasts 91\.00 s; expected from 0\.5 to 90 s"),
        (encoded(tone() * 0.001), "is silent"),
        (encoded(np.full((RATE_HZ, 1), np.nan, dtype=np.float32), subtype="FLOAT"), "not finite"),
    ],
    ids=["empty", "noise bytes", "cut in the header", "too short", "too long", "silent", "not a number"],
)
def test_what_cannot_be_a_voice_is_refused_with_its_reason(data: bytes, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        read_reference(data, sample_rate_hz=RATE_HZ)
