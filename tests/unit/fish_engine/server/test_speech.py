"""How long an utterance may be, and whose voice it has."""

import io
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
import torch

from fish_engine.errors import BadRequest
from fish_engine.server import speech
from fish_engine.server.schemas import TTSBody
from fish_engine.voices.references import ReferenceEncoder


@pytest.fixture(scope="module")
def loaded(model, codec, prompts):
    """What preparing a request needs of a loaded engine."""
    return SimpleNamespace(model=model, codec=codec, prompts=prompts)


def prepare(body, loaded):
    return speech.prepare(body, loaded, ReferenceEncoder(loaded.codec))


def body(**fields):
    return TTSBody.model_validate({"text": "Hello there.", **fields})


def a_recording(pitch_hz):
    file = io.BytesIO()
    time_s = np.arange(44_100) / 44_100
    soundfile.write(file, 0.5 * np.sin(2 * np.pi * pitch_hz * time_s), 44_100, format="FLAC")
    return file.getvalue()


def test_the_frame_limit_is_the_least_of_what_is_asked_what_the_text_can_last_and_what_fits(loaded):
    asked = prepare(body(max_new_tokens=9), loaded)
    lasting = prepare(body(), loaded)
    fitting = prepare(body(text="Hello there. " * 5), loaded)
    assert asked.frame_limit == 9
    assert lasting.frame_limit == 64 + 8 * len("Hello there.")
    assert fitting.frame_limit == loaded.model.config.slow.max_positions - len(fitting.prompt)


def test_the_frames_asked_for_count_for_each_chunk_of_text(loaded):
    text = "Hello there. " * 9  # 117 characters
    assert prepare(body(text=text, max_new_tokens=40, chunk_length=100), loaded).frame_limit == 80
    assert prepare(body(text=text, max_new_tokens=40), loaded).frame_limit == 40


def test_a_text_that_would_be_cut_short_is_refused_with_numbers(loaded):
    with pytest.raises(BadRequest, match=r"text \(1300 characters\) and references leave room for \d+ frames"):
        prepare(body(text="Hello there. " * 100), loaded)


def test_a_seed_is_kept_and_a_missing_one_is_drawn_anew(loaded):
    assert prepare(body(seed=-5), loaded).sampling.seed == -5
    assert prepare(body(), loaded).sampling.seed != prepare(body(), loaded).sampling.seed


def test_a_list_in_the_list_is_one_speaker(loaded, tokenizer):
    one, other = ({"audio": a_recording(pitch), "text": f"said {pitch}"} for pitch in (220, 330))
    ids = prepare(body(references=[[one, other], one]), loaded).prompt[:, 0].tolist()
    said = tokenizer.encode_text("<|speaker:0|>said 220\n<|speaker:0|>said 330\n<|speaker:1|>said 220")
    assert any(ids[start : start + len(said)] == said for start in range(len(ids)))


def test_codes_of_a_reference_stand_in_the_prompt(loaded, codec):
    recording = a_recording(220)
    prompt = prepare(body(references=[{"audio": recording, "text": "a tone"}]), loaded).prompt
    samples, _ = soundfile.read(io.BytesIO(recording), dtype="float32")
    codes = codec.encode(torch.from_numpy(samples)[None, None])[0]
    begin = loaded.model.config.semantic_begin_id
    spoken = prompt[prompt[:, 0] >= begin]
    assert torch.equal(spoken[:, 1:], codes.T)
    assert torch.equal(spoken[:, 0] - begin, codes[0])
