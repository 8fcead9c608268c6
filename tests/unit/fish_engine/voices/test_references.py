"""A recording is encoded once, however often and from wherever it is asked for."""

import io
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import soundfile
import torch

from fish_engine.errors import BadRequest
from fish_engine.voices.references import ReferenceEncoder


class CountingCodec:
    """The real codec, and how often it was asked to encode."""

    def __init__(self, codec):
        self.config = codec.config
        self.encoded = 0
        self._codec = codec
        self.state_dict = codec.state_dict

    def encode(self, sound):
        self.encoded += 1
        return self._codec.encode(sound)


@pytest.fixture
def counting(codec):
    return CountingCodec(codec)


def a_recording(pitch_hz=220):
    file = io.BytesIO()
    time_s = np.arange(30_000) / 44_100
    soundfile.write(file, 0.5 * np.sin(2 * np.pi * pitch_hz * time_s), 44_100, format="FLAC")
    return file.getvalue()


def test_codes_are_those_of_the_codec(counting, codec):
    samples, _ = soundfile.read(io.BytesIO(a_recording()), dtype="float32")
    expected = codec.encode(torch.from_numpy(samples)[None, None])[0]
    assert torch.equal(ReferenceEncoder(counting).codes(a_recording()), expected)


def test_threads_that_want_the_same_recording_wait_for_one_encode(counting):
    encoder = ReferenceEncoder(counting)
    with ThreadPoolExecutor(4) as pool:
        first, *others = pool.map(encoder.codes, [a_recording()] * 4)
    assert counting.encoded == 1
    assert all(torch.equal(first, other) for other in others)


def test_the_recording_that_was_not_asked_for_the_longest_is_forgotten_first(counting):
    encoder = ReferenceEncoder(counting, kept=2)
    for pitch_hz in (220, 330, 220, 440, 220):
        encoder.codes(a_recording(pitch_hz))
    assert counting.encoded == 3
    encoder.codes(a_recording(330))
    assert counting.encoded == 4


def test_what_cannot_be_read_is_refused_every_time(counting):
    encoder = ReferenceEncoder(counting)
    for _ in range(2):
        with pytest.raises(BadRequest, match="cannot be read"):
            encoder.codes(b"no sound")
    assert counting.encoded == 0


def test_a_later_process_finds_the_codes_and_encodes_nothing(counting, tmp_path):
    first = ReferenceEncoder(counting, folder=tmp_path).codes(a_recording())
    again = ReferenceEncoder(counting, folder=tmp_path).codes(a_recording())
    assert torch.equal(first, again)
    assert counting.encoded == 1


def test_a_broken_file_of_codes_is_as_good_as_none(counting, tmp_path):
    first = ReferenceEncoder(counting, folder=tmp_path).codes(a_recording())
    for file in tmp_path.rglob("*.npy"):
        file.write_bytes(b"half")
    assert torch.equal(ReferenceEncoder(counting, folder=tmp_path).codes(a_recording()), first)
    assert counting.encoded == 2
