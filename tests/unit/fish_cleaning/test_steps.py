"""Each step on sound whose faults are known exactly."""

import json
from collections.abc import Callable

import numpy as np
import pyloudnorm
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fish_cleaning.clip import Cleaned, Clip, Item, Reason, Reject
from fish_cleaning.steps.chain import StepConfigs, clean
from fish_cleaning.steps.clipping import ClippingConfig, measure_clipping
from fish_cleaning.steps.decode import DecodeConfig, decode
from fish_cleaning.steps.loudness import LoudnessConfig, integrated_loudness, measure_loudness
from fish_cleaning.steps.speech import SpeechConfig, find_speech, segments_of

Samples = NDArray[np.float32]
Encode = Callable[..., bytes]
RATE_HZ = 16_000
ITEM = Item(id="0" * 20, name="a.wav", content="f" * 64, size_bytes=1)


def reason_of(outcome: Clip | Cleaned | Reject) -> Reason | None:
    return outcome.reason if isinstance(outcome, Reject) else None


def test_a_good_recording_decodes_to_its_samples(speech: Samples, encoded: Encode) -> None:
    clip = decode(encoded(speech), DecodeConfig())
    assert isinstance(clip, Clip)
    assert clip.sample_rate_hz == RATE_HZ
    assert np.abs(clip.samples - speech).max() < 1e-4


def test_channels_are_mixed(speech: Samples, encoded: Encode) -> None:
    clip = decode(encoded(np.stack([speech, np.zeros_like(speech)], axis=1)), DecodeConfig())
    assert isinstance(clip, Clip)
    assert clip.source_channels == 2
    assert np.abs(clip.samples - speech / 2).max() < 1e-4


@pytest.mark.parametrize(
    ("container", "subtype"),
    [
        ("WAV", "PCM_16"),
        ("WAV", "FLOAT"),
        ("RF64", "PCM_16"),
        ("W64", "PCM_16"),
        ("AIFF", "PCM_16"),
        ("FLAC", "PCM_16"),
        ("MP3", "MPEG_LAYER_III"),
        ("OGG", "VORBIS"),
        ("OGG", "OPUS"),
    ],
)
def test_a_recording_that_was_cut_off_is_rejected(
    speech: Samples, encoded: Encode, container: str, subtype: str
) -> None:
    whole = encoded(speech, format=container, subtype=subtype)
    assert reason_of(decode(whole, DecodeConfig())) is None
    cut = decode(whole[: len(whole) * 2 // 3], DecodeConfig())
    # To the decoder a FLAC frame that ends early is like any other damage.
    assert reason_of(cut) is (Reason.CORRUPT if container == "FLAC" else Reason.TRUNCATED)


def test_a_wav_of_unknown_length_is_taken(speech: Samples, encoded: Encode) -> None:
    streamed = bytearray(encoded(speech))
    streamed[4:8] = b"\xff\xff\xff\xff"
    assert reason_of(decode(bytes(streamed), DecodeConfig())) is None


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda _, __: b"", Reason.EMPTY),
        (lambda _, __: b"no sound at all" * 100, Reason.NOT_AUDIO),
        (lambda _, encoded: encoded(np.zeros(0, np.float32)), Reason.EMPTY),
        (lambda speech, encoded: encoded(np.where(speech > 0.1, np.nan, speech), subtype="FLOAT"), Reason.NOT_FINITE),
        (lambda speech, encoded: encoded(np.stack([speech] * 8, axis=1)), Reason.CHANNELS),
        (lambda speech, encoded: encoded(speech, rate_hz=1), Reason.SAMPLE_RATE),
        (lambda speech, encoded: encoded(speech, rate_hz=384_000), Reason.SAMPLE_RATE),
        (lambda speech, encoded: encoded(speech[: RATE_HZ // 2]), Reason.TOO_SHORT),
        (lambda speech, encoded: encoded(np.tile(speech, 4)), Reason.TOO_LONG),
    ],
)
def test_what_cannot_be_used_is_rejected_with_its_reason(
    speech: Samples, encoded: Encode, make: Callable[[Samples, Encode], bytes], reason: Reason
) -> None:
    assert reason_of(decode(make(speech, encoded), DecodeConfig(max_duration_s=20.0))) is reason


@pytest.mark.parametrize("gain_after", [1.0, 0.5, 0.1])
def test_clipping_is_found_at_any_level(speech: Samples, clip_of: Callable[[Samples], Clip], gain_after: float) -> None:
    top = np.quantile(np.abs(speech), 0.99)
    clipped = np.clip(speech, -top, top) * gain_after
    assert reason_of(measure_clipping(clip_of(clipped), ClippingConfig())) is Reason.CLIPPED
    assert reason_of(measure_clipping(clip_of(speech * gain_after), ClippingConfig())) is None


@pytest.mark.parametrize("rate_hz", [8_000, 16_000, 44_100, 48_000])
@pytest.mark.parametrize("gain", [1.0, 0.01])
def test_loudness_agrees_with_pyloudnorm(speech: Samples, rate_hz: int, gain: float) -> None:
    """On whole tenths of a second: BS.1770-4 leaves an incomplete last block out, pyloudnorm may count it as quiet."""
    sound = speech[: len(speech) // (rate_hz // 10) * (rate_hz // 10)] * gain
    theirs = pyloudnorm.Meter(rate_hz).integrated_loudness(sound.astype(np.float64))
    assert integrated_loudness(sound, rate_hz) == pytest.approx(theirs, abs=0.01)


def test_loudness_of_a_long_recording_does_not_show_where_it_was_cut_for_measuring(speech: Samples) -> None:
    long = np.tile(speech, 10)  # 71 s: three stretches
    theirs = pyloudnorm.Meter(RATE_HZ).integrated_loudness(long.astype(np.float64))
    assert integrated_loudness(long, RATE_HZ) == pytest.approx(theirs, abs=0.01)


def test_what_is_too_quiet_is_rejected(speech: Samples, clip_of: Callable[[Samples], Clip]) -> None:
    assert reason_of(measure_loudness(clip_of(speech * 1e-3), LoudnessConfig())) is Reason.TOO_QUIET
    assert reason_of(measure_loudness(clip_of(np.zeros_like(speech)), LoudnessConfig())) is Reason.TOO_QUIET


def test_speech_is_found_where_it_is(speech: Samples, clip_of: Callable[[Samples], Clip]) -> None:
    silence = np.zeros(2 * RATE_HZ, np.float32)
    clip = find_speech(clip_of(np.concatenate([silence, speech, silence])), SpeechConfig())
    assert isinstance(clip, Clip)
    assert clip.speech[0].start_s == pytest.approx(2.0, abs=0.5)
    assert clip.speech[-1].end_s == pytest.approx(2.0 + len(speech) / RATE_HZ, abs=0.5)


def test_speech_is_found_the_same_at_another_sample_rate(speech: Samples) -> None:
    upsampled = np.repeat(speech, 3)  # 48 kHz; crude, but the model hears the band below 8 kHz only
    clip = find_speech(Clip(samples=upsampled, sample_rate_hz=48_000, source_channels=1), SpeechConfig())
    assert isinstance(clip, Clip)
    assert clip.speech[-1].end_s == pytest.approx(len(speech) / RATE_HZ, abs=0.5)


def test_noise_is_no_speech(clip_of: Callable[[Samples], Clip]) -> None:
    noise = np.random.default_rng(0).standard_normal(5 * RATE_HZ) * 0.05
    assert reason_of(find_speech(clip_of(noise), SpeechConfig())) is Reason.NO_SPEECH


@given(st.lists(st.floats(0, 1), max_size=200))
def test_segments_are_ordered_apart_and_inside(probabilities: list[float]) -> None:
    duration_s = len(probabilities) * 0.032
    segments = segments_of(probabilities, duration_s=duration_s, config=SpeechConfig())
    edges = [edge for segment in segments for edge in (segment.start_s, segment.end_s)]
    assert edges == sorted(edges)
    assert all(0 <= edge <= duration_s + 1e-3 for edge in edges)


def test_the_chain_gives_the_same_bytes_each_time(speech: Samples, encoded: Encode) -> None:
    first, second = (clean(ITEM, encoded(speech), StepConfigs()) for _ in range(2))
    assert isinstance(first, Cleaned)
    assert first == second
    assert json.loads(first.metadata_json)["source"] == "a.wav"


def test_a_rejection_says_how_long_the_sound_was(encoded: Encode) -> None:
    outcome = clean(ITEM, encoded(np.zeros(2 * RATE_HZ, np.float32)), StepConfigs())
    assert isinstance(outcome, Reject)
    assert outcome.duration_s == 2.0
