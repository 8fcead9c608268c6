"""How long an utterance may be, and whose voice it has."""

import io
from types import SimpleNamespace

import numpy as np
import pytest
import soundfile
import torch

from fish_engine.errors import BadRequest
from fish_engine.model.prompt import Turn
from fish_engine.server import speech
from fish_engine.server.schemas import TTSBody
from fish_engine.voices.library import Voice, VoiceLibrary
from fish_engine.voices.references import ReferenceEncoder


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return VoiceLibrary(tmp_path_factory.mktemp("voices"))


@pytest.fixture(scope="module")
def loaded(model, codec, prompts, library):
    """What preparing a request needs of a loaded engine."""
    return SimpleNamespace(model=model, codec=codec, prompts=prompts, library=library)


def prepare(body, loaded):
    return speech.prepare(body, loaded, ReferenceEncoder(loaded.codec), loaded.library)


def body(**fields):
    return TTSBody.model_validate({"text": "Hello there.", **fields})


def a_recording(pitch_hz):
    file = io.BytesIO()
    time_s = np.arange(44_100) / 44_100
    soundfile.write(file, 0.5 * np.sin(2 * np.pi * pitch_hz * time_s), 44_100, format="FLAC")
    return file.getvalue()


def test_the_frame_limit_is_the_least_of_what_is_asked_what_the_text_can_last_and_what_fits(loaded):
    asked = prepare(body(max_new_tokens=9), loaded).speech("Hello there.")
    lasting = prepare(body(), loaded).speech("Hello there.")
    fitting = prepare(body(), loaded).speech("Hello there. " * 5)
    assert asked.frame_limit == 9
    assert lasting.frame_limit == 64 + 8 * len("Hello there.")
    assert fitting.frame_limit == loaded.model.config.slow.max_positions - len(fitting.prompt)


def test_a_part_is_never_longer_than_what_the_context_is_likely_to_hold(loaded):
    chars = prepare(body(chunk_length=1000), loaded).part_chars
    assert chars < 200
    assert prepare(body(), loaded).speech("가" * chars).frame_limit > 2 * chars


def test_references_that_leave_no_room_are_refused(loaded):
    recordings = [{"audio": a_recording(220 + pitch), "text": "a tone"} for pitch in range(0, 800, 50)]
    with pytest.raises(BadRequest, match=r"leave room for \d+ positions of text and speech, which is too little"):
        prepare(body(references=[recordings]), loaded)


def test_a_part_follows_from_the_one_before_while_there_is_room_for_both(loaded):
    codes = torch.zeros(loaded.model.config.codebook_count, 20, dtype=torch.int64)
    before = Turn(text="Hello there.", codes=codes)
    alone = prepare(body(max_new_tokens=30), loaded).speech("And?")
    following = prepare(body(max_new_tokens=30), loaded).speech("And?", before=before)
    apart = prepare(body(max_new_tokens=30, condition_on_previous_chunks=False), loaded).speech("And?", before=before)
    crowded = prepare(body(), loaded).speech("And? " * 16, before=before)
    assert len(following.prompt) > len(alone.prompt) + 20
    assert torch.equal(apart.prompt, alone.prompt)
    assert torch.equal(crowded.prompt, prepare(body(), loaded).speech("And? " * 16).prompt)


def test_each_part_has_a_seed_of_its_own_that_follows_from_the_first(loaded):
    speaker = prepare(body(seed=2**63 - 1), loaded)
    assert [speaker.speech("Hi.", index=index).sampling.seed for index in (0, 1)] == [2**63 - 1, -(2**63)]


def test_a_seed_is_kept_and_a_missing_one_is_drawn_anew(loaded):
    assert prepare(body(seed=-5), loaded).sampling.seed == -5
    assert prepare(body(), loaded).sampling.seed != prepare(body(), loaded).sampling.seed


def test_a_list_in_the_list_is_one_speaker(loaded, tokenizer):
    one, other = ({"audio": a_recording(pitch), "text": f"said {pitch}"} for pitch in (220, 330))
    ids = prepare(body(references=[[one, other], one]), loaded).speech("Hi.").prompt[:, 0].tolist()
    said = tokenizer.encode_text("<|speaker:0|>said 220\n<|speaker:0|>said 330\n<|speaker:1|>said 220")
    assert any(ids[start : start + len(said)] == said for start in range(len(ids)))


def test_codes_of_a_reference_stand_in_the_prompt(loaded, codec):
    recording = a_recording(220)
    prompt = prepare(body(references=[{"audio": recording, "text": "a tone"}]), loaded).speech("Hi.").prompt
    samples, _ = soundfile.read(io.BytesIO(recording), dtype="float32")
    codes = codec.encode(torch.from_numpy(samples)[None, None])[0]
    begin = loaded.model.config.semantic_begin_id
    spoken = prompt[prompt[:, 0] >= begin]
    assert torch.equal(spoken[:, 1:], codes.T)
    assert torch.equal(spoken[:, 0] - begin, codes[0])


def test_a_stored_voice_is_a_reference_by_its_id_and_a_list_of_ids_is_a_list_of_speakers(loaded, library):
    recordings = {"ann": a_recording(220), "bob": a_recording(330)}
    for name, recording in recordings.items():
        texts = (f"said by {name}",)
        library.add(Voice(voice_id=name, title=name, texts=texts, created_at="", updated_at=""), [recording])
    sent = [{"audio": recording, "text": f"said by {name}"} for name, recording in recordings.items()]
    by_id = prepare(body(reference_id=["ann", "bob"]), loaded).speech("Hi.").prompt
    assert torch.equal(by_id, prepare(body(references=sent), loaded).speech("Hi.").prompt)
    with pytest.raises(BadRequest, match="there is no voice 'eve' here"):
        prepare(body(reference_id="eve"), loaded)
