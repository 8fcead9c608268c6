"""Prompts are those that the model was trained with, whatever a user writes."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fish_engine.errors import BadCheckpoint
from fish_engine.model.prompt import Reference, Turn
from fish_engine.model.tokenizer import TextTokenizer

CLONE_TEXT = "<|speaker:0|>I am fine [laugh] thank you. 你好 — ¿qué tal?"


def test_a_plain_prompt_equals_the_golden_one(prompts, golden):
    assert torch.equal(prompts.build("Hello, how are you?"), golden["plain.prompt"].T)


@pytest.mark.parametrize("said", ["<|speaker:0|>the quick brown fox", "the quick brown fox"])
def test_a_prompt_with_a_reference_equals_the_golden_one_tagged_or_not(prompts, golden, said):
    codes = golden["clone.prompt"][1:, 44:67]
    assert torch.equal(prompts.build(CLONE_TEXT, [Reference(text=said, codes=codes)]), golden["clone.prompt"].T)


def test_each_reference_gets_the_tag_of_its_place(prompts, tokenizer):
    codes = torch.zeros(10, 2, dtype=torch.int64)
    references = [Reference(text="one", codes=codes), Reference(text="two", codes=codes + 1)]
    ids = prompts.build("hi", references)[:, 0].tolist()
    said = tokenizer.encode_text("<|speaker:0|>one\n<|speaker:1|>two")
    assert any(ids[start : start + len(said)] == said for start in range(len(ids)))


@pytest.mark.parametrize(
    "token", ["<|im_end|>", "<|im_start|>", "<|semantic:5|>", "<|endoftext|>", "<|voice|>", "<|pad|>"]
)
def test_a_control_token_in_the_text_is_spelled_out(tokenizer, token):
    control = tokenizer.encode_piece(token)[0]
    ids = tokenizer.encode_text(f"before {token} after")
    assert control not in ids
    assert len(ids) > len(tokenizer.encode_text("before  after")) + 3


@pytest.mark.parametrize("token", ["<|phoneme_start|>", "<|phoneme_end|>", "<|speaker:1|>"])
def test_speaker_tags_and_phoneme_marks_stay_what_they_are(tokenizer, token):
    assert tokenizer.encode_piece(token)[0] in tokenizer.encode_text(f"a{token}b")


fragments = st.sampled_from(
    ["<|im_", "<|im_end|>", "end|>", "<|semantic:", "3|>", "<|", "|>", "im_end", "a", " ", "é", "\n"]
)


@settings(deadline=None, max_examples=200)
@given(parts=st.lists(fragments, max_size=12))
def test_no_text_whatsoever_yields_a_control_token(tokenizer, config, parts):
    ids = tokenizer.encode_text("".join(parts))
    assert tokenizer.im_end_id not in ids
    assert not any(config.semantic_begin_id <= id_ <= config.semantic_end_id for id_ in ids)


def test_semantic_ids_that_disagree_with_the_config_are_refused_by_number(model_folder, config):
    shifted = type(config)(
        **{field: getattr(config, field) for field in config.__slots__ if not field.startswith("semantic")},
        semantic_begin_id=config.semantic_begin_id - 1,
        semantic_end_id=config.semantic_end_id - 1,
    )
    with pytest.raises(BadCheckpoint, match=r"at 356\.\.483, but config\.json says 355\.\.482"):
        TextTokenizer(model_folder / "tokenizer.json", shifted)


def test_a_file_that_is_no_tokenizer_is_named(tmp_path, config):
    with pytest.raises(BadCheckpoint, match=r"tokenizer\.json does not exist"):
        TextTokenizer(tmp_path / "tokenizer.json", config)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(BadCheckpoint, match="is not a tokenizer file"):
        TextTokenizer(tmp_path / "tokenizer.json", config)


def test_what_was_said_before_stands_between_the_voice_and_the_text(prompts, tokenizer, config):
    codes = torch.arange(2 * config.codebook_count).reshape(config.codebook_count, 2) % 8
    before = Turn(text="One.", codes=codes)
    prompt = prompts.build("Two.", before=[before])
    said_first, said_next = prompts.build("One."), prompts.build("Two.")
    system = (
        len(prompts.build(""))
        - len(tokenizer.encode_piece("<|im_start|>user\n"))
        - len(tokenizer.encode_piece("<|im_end|>\n"))
        - len(tokenizer.encode_piece("<|im_start|>assistant\n<|voice|>"))
    )
    assert torch.equal(prompt[: len(said_first)], said_first)
    assert torch.equal(prompt[len(said_first) : len(said_first) + 2, 1:], codes.T)
    assert torch.equal(prompt[-(len(said_next) - system) :], said_next[system:])
