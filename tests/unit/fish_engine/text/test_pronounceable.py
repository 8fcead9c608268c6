"""Which texts have something to say."""

import pytest

from fish_engine.text.pronounceable import is_pronounceable


@pytest.mark.parametrize("text", ["a", "7", "你好", "ทดสอบ", "नमस्ते", "… yes!", "[laugh]", "<|speaker:0|>no"])
def test_letters_and_digits_of_any_script_can_be_said(text):
    assert is_pronounceable(text)


@pytest.mark.parametrize(
    "text", ["", " \n", "...", "?!", "🎉👍", "—", "<|speaker:0|>", "<|speaker:12|> … <|phoneme_start|>"]
)
def test_punctuation_emoji_and_bare_tags_cannot(text):
    assert not is_pronounceable(text)
