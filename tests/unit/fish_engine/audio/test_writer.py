"""A file in any format holds the sound that went in: its length, its pitch, from the first sample to the last."""

import io

import av
import numpy as np
import pytest

from fish_engine.audio.formats import FORMATS, chosen_encoding, opus_bit_rate_bps
from fish_engine.audio.writer import Sounding, SoundWriter
from fish_engine.errors import BadRequest

RATE_HZ = 44_100
PITCH_HZ = 440.0
CODEC_DELAY_SAMPLES = 2500
"""What a lossy format may add: two of its frames."""
RAW = {"pcm": "s16le", "ulaw": "mulaw", "alaw": "alaw"}
CASES = [(name, rate_hz) for name, each in FORMATS.items() for rate_hz in each.rates_hz]


def a_tone(duration_s=1.0):
    return (0.3 * np.sin(2 * np.pi * PITCH_HZ * np.arange(int(duration_s * RATE_HZ)) / RATE_HZ)).astype(np.float32)


def written(samples, name, *, chunk=2048, rate_hz=None, bit_rate_bps=None, **sounding):
    encoding = chosen_encoding(name, rate_hz=rate_hz, bit_rate_bps=bit_rate_bps)
    writer = SoundWriter(Sounding(encoding=encoding, **sounding), source_rate_hz=RATE_HZ)
    pieces = [writer.write(samples[start : start + chunk]) for start in range(0, len(samples), chunk)]
    return [*pieces, writer.finish()], writer.sound_s


def played(file, name, rate_hz):
    options = {"sample_rate": str(rate_hz)} if name in RAW else {}
    with av.open(io.BytesIO(file), format=RAW.get(name), options=options) as container:
        resampler = av.AudioResampler("flt", "mono")
        frames = [frame for read in container.decode(audio=0) for frame in resampler.resample(read)]
        return np.concatenate([frame.to_ndarray()[0] for frame in frames]), container.streams.audio[0].rate


def pitch_hz(samples, rate_hz):
    return np.abs(np.fft.rfft(samples)).argmax() * rate_hz / len(samples)


@pytest.mark.parametrize(("name", "rate_hz"), CASES)
def test_every_format_and_rate_keeps_length_and_pitch(name, rate_hz):
    pieces, sound_s = written(a_tone(), name, rate_hz=rate_hz)
    samples, read_rate_hz = played(b"".join(pieces), name, rate_hz)
    assert read_rate_hz == rate_hz
    assert sound_s == pytest.approx(1.0, abs=0.001)
    assert -1 <= len(samples) - rate_hz <= CODEC_DELAY_SAMPLES
    assert pitch_hz(samples, rate_hz) == pytest.approx(PITCH_HZ, abs=2)


@pytest.mark.parametrize("name", list(FORMATS))
def test_sound_leaves_while_it_is_made(name):
    pieces, _ = written(a_tone(), name)
    assert any(pieces[:3])
    assert len([piece for piece in pieces if piece]) > 5


@pytest.mark.parametrize("speed", [0.25, 0.5, 0.8, 1.5, 2.0, 4.0])
def test_speed_changes_the_length_and_not_the_pitch(speed):
    pieces, sound_s = written(a_tone(), "pcm", speed=speed)
    samples = np.frombuffer(b"".join(pieces), "<i2").astype(float)
    assert len(samples) / RATE_HZ == pytest.approx(1 / speed, abs=0.1)
    assert sound_s == len(samples) / RATE_HZ
    assert pitch_hz(samples, RATE_HZ) == pytest.approx(PITCH_HZ, abs=3)


def test_volume_is_a_factor():
    (loud, *_), _ = written(a_tone(), "pcm")
    (quiet, *_), _ = written(a_tone(), "pcm", gain=0.1)
    assert np.abs(np.frombuffer(quiet, "<i2") - np.frombuffer(loud, "<i2") / 10).max() <= 1


@pytest.mark.parametrize("rate_hz", [8_000, 16_000, 44_100])
def test_the_sound_does_not_depend_on_how_it_was_cut(rate_hz):
    files = [b"".join(written(a_tone(), "pcm", chunk=chunk, rate_hz=rate_hz)[0]) for chunk in (500, 2048, 44_100)]
    first, *others = [np.frombuffer(file, "<i2").astype(int) for file in files]
    assert all(np.abs(first - other).max() <= 1 for other in others)


def test_a_bit_rate_is_heard_in_the_size():
    small, large = (sum(map(len, written(a_tone(), "mp3", bit_rate_bps=rate)[0])) for rate in (64_000, 192_000))
    assert large == pytest.approx(3 * small, rel=0.05)


@pytest.mark.parametrize("name", list(FORMATS))
def test_a_file_without_sound_can_be_finished(name):
    pieces, sound_s = written(a_tone(0), name)
    assert sound_s == 0
    assert len(pieces) == 1


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"name": "mp4"}, "format: 'mp4' is not supported; expected one of: mp3, wav"),
        ({"name": "mp3", "rate_hz": 8_000}, "sample_rate of mp3: 8000 is not supported; expected one of: 32000, 44100"),
        ({"name": "opus", "rate_hz": 44_100}, "sample_rate of opus: 44100 is not supported; expected one of: 48000"),
        ({"name": "wav", "rate_hz": 22_050}, "expected one of: 8000, 16000, 24000, 32000, 44100"),
        ({"name": "mp3", "bit_rate_bps": 320_000}, "bit rate of mp3: 320000 is not supported"),
    ],
)
def test_what_a_format_cannot_have_is_refused_with_what_it_can(asked, complaint):
    with pytest.raises(BadRequest, match=complaint):
        chosen_encoding(**asked)


@pytest.mark.parametrize(("asked", "bps"), [(-1000, None), (24, 24_000), (64_000, 64_000)])
def test_both_ways_of_writing_an_opus_bit_rate_are_read(asked, bps):
    assert opus_bit_rate_bps(asked) == bps
