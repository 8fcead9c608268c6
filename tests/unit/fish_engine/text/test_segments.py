"""A long text is cut where a reader would pause, and nothing of it is lost."""

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fish_engine.text.segments import Segmenter

PIECES = [
    "Hello there. ", "a", "é", "e\u0301", "👩‍👩‍👧", "3.14", "1 000 000", "今天天气很好。", "はい！", "สวัสดี", "[laughs]", "Dr. ", "\n",
    "<|phoneme_start|>HH AH0<|phoneme_end|>", "word ", "…", ", ", "x" * 70, "<|", "[", "। ", "https://a.b/c?d=1 ",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=60).map("".join)


def parts_of(text, limit_chars=60):
    segmenter = Segmenter(limit_chars=limit_chars)
    return segmenter.add(text) + segmenter.flush()


def without_space(text):
    return re.sub(r"\s", "", text)


@settings(max_examples=40, deadline=None)
@given(text=TEXTS)
def test_nothing_is_lost_or_doubled(text):
    assert without_space("".join(parts_of(text))) == without_space(text)


@settings(max_examples=40, deadline=None)
@given(text=TEXTS)
def test_numbers_tags_cues_and_characters_stay_whole(text):
    parts = parts_of(text, limit_chars=10)
    for whole in ("3.14", "1 000 000", "[laughs]", "<|phoneme_start|>HH AH0<|phoneme_end|>", "e\u0301", "👩‍👩‍👧"):
        # Neighbours may make another number of two, or open a bracket before: then it is that which stays whole.
        if text.count(whole) and not re.search(r"\d\d?[.\d ]*(3\.14|1 000 000)\d|\[\[|<\|<", text):
            assert sum(part.count(whole) for part in parts) == text.count(whole)


@settings(max_examples=40, deadline=None)
@given(text=TEXTS, cuts=st.lists(st.integers(0, 200), max_size=6))
def test_pieces_that_arrive_one_by_one_lose_nothing_either(text, cuts):
    segmenter, told, start = Segmenter(limit_chars=40), [], 0
    for end in [*sorted(min(cut, len(text)) for cut in cuts), len(text)]:
        told += segmenter.add(text[start:end]) + segmenter.sentences()
        start = end
    told += segmenter.flush()
    assert segmenter.pending_chars == 0
    assert without_space("".join(told)) == without_space(text)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One is here. Two is there. Three.", ["One is here. Two is there.", "Three."]),
        ("He said: “Go!” Then he went away.", ["He said: “Go!”", "Then he went away."]),
        ("It costs 3.14 and no more than that.", ["It costs 3.14 and no more", "than that."]),
        ("I met Dr. Stone there, I do presume.", ["I met Dr. Stone there,", "I do presume."]),
        (
            "今天天气很好。我们去公园玩吧，好不好？他说，我不知道。你呢？",
            ["今天天气很好。我们去公园玩吧，好不好？他说，我不知道。", "你呢？"],
        ),
        ("यह एक वाक्य है। यह दूसरा वाक्य है।", ["यह एक वाक्य है।", "यह दूसरा वाक्य है।"]),
        ("A first line\nand a second line of it", ["A first line", "and a second line of it"]),
        ("x" * 40, ["x" * 16, "x" * 24]),
    ],
)
def test_the_best_break_wins_and_of_equal_ones_the_last(text, parts):
    assert parts_of(text, limit_chars=28) == parts


def test_a_part_that_goes_on_says_who_speaks():
    text = "<|speaker:0|>I say this. And I say that too. <|speaker:1|>I do not."
    assert parts_of(text, limit_chars=34) == [
        "<|speaker:0|>I say this.",
        "<|speaker:0|>And I say that too.",
        "<|speaker:1|>I do not.",
    ]


def test_a_complete_sentence_can_be_had_before_a_part_is_full():
    segmenter = Segmenter(limit_chars=200)
    assert segmenter.add("It is 3.") == []
    assert segmenter.sentences() == []
    assert segmenter.add("5 now. And") == []
    assert segmenter.sentences() == ["It is 3.5 now."]
    assert segmenter.flush() == ["And"]


@pytest.mark.parametrize("unit", ["a. ", "a", "1 ", "[", "<|", "👩‍👩‍👧", "\n", "<|phoneme_start|>"])
def test_time_grows_with_the_length_and_no_faster(unit):
    def took_s(chars):
        started_s = time.process_time()
        parts_of(unit * (chars // len(unit)), limit_chars=200)
        return time.process_time() - started_s

    took_s(1_000)
    assert took_s(40_000) < 60 * max(took_s(2_000), 0.002)
