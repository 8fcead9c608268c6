"""The numbers of the reference implementation, reached by the plain model and by the loop that serves."""

import pytest
import torch

from fish_engine.model.dual_ar import trace
from fish_engine.model.sampling import SamplingParams

GREEDY = SamplingParams(temperature=0.0)


@pytest.mark.parametrize("name", ["plain", "clone"])
def test_logits_of_the_reference_are_met_within_a_ten_thousandth(model, golden, name):
    slow, fast = trace(model, golden[f"{name}.prompt"].T, golden[f"{name}.frames"].T)
    torch.testing.assert_close(slow[:6], golden[f"{name}.slow_logits"], atol=1e-4, rtol=0)
    torch.testing.assert_close(fast[:6], golden[f"{name}.fast_logits"], atol=1e-4, rtol=0)


def test_the_loop_draws_the_greedy_frames_of_the_reference_for_both_prompts_at_once(play, line, golden):
    names = ("plain", "clone")
    played = play([line(prompt=golden[f"{name}.prompt"].T, sampling=GREEDY) for name in names])
    for index, name in enumerate(names):
        assert torch.equal(played.columns[index], golden[f"{name}.frames"].T), name


def test_a_prefill_in_small_chunks_ends_in_the_same_frames(play, line, golden):
    played = play([line(prompt=golden["clone.prompt"].T, sampling=GREEDY)], prefill_chunk=32)
    assert torch.equal(played.columns[0], golden["clone.frames"].T)
