"""PCM and WAV as other programs read them."""

import io
import struct
import wave

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from fish_engine.audio.wav import HEADER_BYTES, STREAMED_DATA_BYTES, pcm16, wav_header, with_true_sizes


@pytest.mark.parametrize(
    ("sample", "value"),
    [
        (0.0, 0),
        (1.0, 32767),
        (-1.0, -32767),
        (0.5, 16384),
        (1.5, 32767),
        (-1.5, -32767),
        (np.nan, 0),
        (np.inf, 32767),
        (-np.inf, -32767),
    ],
)
def test_a_sample_becomes_its_nearest_step_and_faults_stay_in_range(sample: float, value: int) -> None:
    assert struct.unpack("<h", pcm16(np.array([sample], dtype=np.float32))) == (value,)


@given(samples=st.lists(st.floats(-1, 1, width=32), max_size=200), at=st.integers(0, 200))
def test_pcm_of_parts_is_pcm_of_the_whole(samples: list[float], at: int) -> None:
    whole = np.array(samples, dtype=np.float32)
    assert pcm16(whole[:at]) + pcm16(whole[at:]) == pcm16(whole)


def test_a_buffered_file_tells_its_true_size() -> None:
    samples = np.sin(np.arange(4410, dtype=np.float32) / 10)
    data = with_true_sizes(wav_header(sample_rate_hz=44_100, data_bytes=None) + pcm16(samples))
    assert data == wav_header(sample_rate_hz=44_100, data_bytes=2 * 4410) + pcm16(samples)
    with wave.open(io.BytesIO(data)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate(), file.getnframes()) == (
            1,
            2,
            44_100,
            4410,
        )
    read, rate = soundfile.read(io.BytesIO(data), dtype="float32")
    assert rate == 44_100
    np.testing.assert_allclose(read, samples, atol=1 / 16_000)


def test_a_streamed_header_says_more_than_any_stream_has_and_is_read_to_its_end() -> None:
    header = wav_header(sample_rate_hz=44_100, data_bytes=None)
    assert len(header) == HEADER_BYTES
    assert struct.unpack_from("<I", header, 4) == (4_294_967_076,)
    assert struct.unpack_from("<I", header, 40) == (4_294_967_040,)
    read, _ = soundfile.read(io.BytesIO(header + bytes(2000)))
    assert len(read) == 1000


@pytest.mark.parametrize("data_bytes", [-1, STREAMED_DATA_BYTES + 1])
def test_a_size_that_no_wav_can_have_is_refused(data_bytes: int) -> None:
    with pytest.raises(ValueError, match=f"found {data_bytes}"):
        wav_header(sample_rate_hz=44_100, data_bytes=data_bytes)


def test_a_rate_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="sample_rate_hz must be positive, found 0"):
        wav_header(sample_rate_hz=0, data_bytes=0)
