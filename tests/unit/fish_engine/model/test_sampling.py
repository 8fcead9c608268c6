"""The draw follows its definition, written out here once more in plain Python."""

import math
from collections import Counter

import pytest
import torch

from fish_engine.model import sampling
from fish_engine.model.sampling import (
    NO_TOKEN,
    RAS_TOP_P,
    RAS_WINDOW,
    TOP_K,
    SamplingRows,
    draw_keys,
    exponentials,
)


def draw_code(logits, rows, codebook):
    return sampling.draw_code(logits, rows, draw_keys(rows, 11)[:, codebook])


def draw_main(logits, rows):
    return sampling.draw_main(logits, rows, draw_keys(rows, 11))


def rows(count, *, temperature=1.0, top_p=1.0, penalty=1.0, frame=1, seeds=None, recent=()):
    window = torch.full((count, RAS_WINDOW), NO_TOKEN)
    window[:, : len(recent)] = torch.tensor(recent, dtype=torch.int64)
    return SamplingRows(
        temperature=torch.full((count,), temperature),
        top_p=torch.full((count,), top_p),
        repetition_penalty=torch.full((count,), penalty),
        seed=torch.arange(count) if seeds is None else torch.tensor(seeds),
        frame=torch.full((count,), frame),
        recent=window,
    )


def expected_chances(logits, *, temperature, top_p):
    """Sort; cut where the mass at temperature 1, own included, exceeds top_p, or at rank TOP_K; then apply the temperature."""
    mass = sum(math.exp(logit) for logit in logits)
    kept, cumulated = [], 0.0
    for rank, (logit, token) in enumerate(sorted(((logit, token) for token, logit in enumerate(logits)), reverse=True)):
        cumulated += math.exp(logit) / mass
        if rank == 0 or (cumulated <= top_p and rank < TOP_K):
            kept.append((logit, token))
    weights = {token: math.exp(logit / max(temperature, 1e-5)) for logit, token in kept}
    return {token: weight / sum(weights.values()) for token, weight in weights.items()}


@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 0.999), (0.7, 0.7), (0.3, 0.9), (1.0, 0.05)])
def test_codes_are_drawn_with_the_chances_of_the_definition(temperature, top_p):
    draws = 20_000
    logits = torch.linspace(-1.5, 2.5, 40)[torch.randperm(40, generator=torch.Generator().manual_seed(1))]
    chances = expected_chances(logits.tolist(), temperature=temperature, top_p=top_p)
    drawn = Counter(draw_code(logits.expand(draws, -1), rows(draws, temperature=temperature, top_p=top_p), 3).tolist())
    assert set(drawn) <= set(chances)
    for token, chance in chances.items():
        spread = 5 * math.sqrt(chance * (1 - chance) / draws)
        assert abs(drawn[token] / draws - chance) <= spread, token


def test_the_token_that_crosses_top_p_is_cut_but_never_the_first():
    logits = torch.log(torch.tensor([[0.5, 0.3, 0.2]])).expand(500, -1)
    assert set(draw_code(logits, rows(500, top_p=0.79), 1).tolist()) == {0}
    assert set(draw_code(logits, rows(500, top_p=0.81), 1).tolist()) == {0, 1}
    assert set(draw_code(logits, rows(500, top_p=0.0), 1).tolist()) == {0}


def test_top_p_does_not_depend_on_temperature():
    logits = torch.log(torch.tensor([[0.5, 0.3, 0.2]])).expand(500, -1)
    assert set(draw_code(logits, rows(500, top_p=0.81, temperature=0.1), 1).tolist()) <= {0, 1}


def test_a_repeated_main_token_is_drawn_once_more_at_fixed_settings():
    draws = 4000
    logits = torch.log(torch.tensor([[0.7, 0.15, 0.1, 0.05]])).expand(draws, -1)  # the last entry is the end
    normal = rows(draws, temperature=1e-3, top_p=0.5)
    assert set(draw_main(logits, normal).tolist()) == {0}
    repeating = rows(draws, temperature=1e-3, top_p=0.5, recent=(0,))
    drawn = Counter(draw_main(logits, repeating).tolist())
    chances = expected_chances(logits[0].tolist(), temperature=1.0, top_p=RAS_TOP_P)
    assert set(drawn) == set(chances) == {0, 1}
    assert abs(drawn[0] / draws - chances[0]) < 0.05


def test_the_end_may_repeat_and_an_empty_window_repeats_nothing():
    logits = torch.tensor([[0.0, 0.0, 9.0]])
    assert draw_main(logits, rows(1, top_p=0.5, recent=(2,))).item() == 2
    assert draw_main(logits, rows(1, top_p=0.5)).item() == 2


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_an_utterance_never_ends_before_its_first_frame(temperature):
    logits = torch.tensor([[0.0, 1.0, 50.0]]).expand(200, -1)
    assert 2 not in draw_main(logits, rows(200, temperature=temperature, frame=0)).tolist()
    assert set(draw_main(logits, rows(200, temperature=temperature, frame=1)).tolist()) == {2}


def test_greedy_ignores_window_and_penalty():
    logits = torch.tensor([[1.0, 3.0, 2.0]])
    assert draw_main(logits, rows(1, temperature=0.0, penalty=2.0, recent=(1,))).item() == 1


def test_the_penalty_makes_recent_tokens_less_likely_whatever_their_sign():
    for logits in ([2.0, 1.9, -9.0], [-1.0, -1.1, -9.0]):
        drawn = draw_main(torch.tensor([logits]), rows(1, temperature=1e-4, top_p=1.0, penalty=2.0, recent=(0,)))
        assert drawn.item() == 1


def test_a_row_draws_the_same_alone_and_among_others():
    logits = torch.randn(9, 60, generator=torch.Generator().manual_seed(4))
    together = draw_main(logits, rows(9))
    alone = [draw_main(logits[index : index + 1], rows(1, seeds=[index])).item() for index in range(9)]
    assert together.tolist() == alone


def test_seed_frame_and_draw_each_change_the_numbers():
    keys = [draw_keys(rows(1, seeds=[seed], frame=frame), 11) for seed in (0, 1) for frame in (1, 2)]
    assert len(torch.cat(keys).unique()) == 44


def test_the_numbers_are_exponential_and_never_zero():
    numbers = exponentials(draw_keys(rows(400), 1), torch.arange(500))
    assert numbers.min() > 0
    assert abs(numbers.mean().item() - 1) < 0.01
    assert abs((numbers > 1).float().mean().item() - math.exp(-1)) < 0.005
    assert abs((numbers > 3).float().mean().item() - math.exp(-3)) < 0.002
