"""How the next token of each row is drawn; all in float32, all rows at once, each by its own parameters.

Filter, then draw: keep the most likely tokens whose mass, their own included, stays within `top_p` (measured at temperature
1), at most `TOP_K` of them and at least one; then apply the temperature, and take the largest p / e with e exponential.
The main token has a second draw at fixed settings, which is taken when the first one repeats the recent past (RAS).

Greedy (temperature 0) is the argmax over what may follow, without RAS and without penalty.

The exponentials come from a counter, not from a generator: a hash of (seed, frame, draw, token). So the frames of a request
depend on its seed alone, not on who shares its batch, nor on having been stopped and resumed.
"""

from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

TOP_K: Final = 30
RAS_WINDOW: Final = 10
"""Frames looked back at; the first frame of an utterance is never one of them."""
RAS_TEMPERATURE: Final = 1.0
RAS_TOP_P: Final = 0.9
NO_TOKEN: Final = -1
"""Fills a window that is not full yet."""

_MIN_TEMPERATURE: Final = 1e-5


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """What a request may choose. `temperature` 0 is greedy; `repetition_penalty` 1 is none."""

    temperature: float = 0.7
    top_p: float = 0.7
    repetition_penalty: float = 1.0
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingRows:
    """The parameters of a batch, one row a request, and what each row has said lately."""

    temperature: Tensor  # [B] float32
    top_p: Tensor  # [B] float32
    repetition_penalty: Tensor  # [B] float32
    seed: Tensor  # [B] int64
    frame: Tensor  # [B] int64, index of the frame being drawn
    recent: Tensor  # [B, RAS_WINDOW] int64, choices of the last frames but the first, NO_TOKEN where there is none


def draw_main(logits: Tensor, rows: SamplingRows, keys: Tensor) -> Tensor:
    """Return for each row an index into `logits` [B, semantic ids + 1], whose last entry ends the utterance.

    An utterance has at least one frame: at frame 0 the end may not be chosen.
    """
    end = logits.shape[-1] - 1
    logits = logits.float()
    is_first_end = torch.zeros_like(logits, dtype=torch.bool)
    is_first_end[:, end] = rows.frame == 0
    logits = logits.masked_fill(is_first_end, float("-inf"))
    likely = _most_likely(_penalised(logits, rows))
    normal = _draw(likely, rows.temperature, rows.top_p, keys[:, 0])
    steady = torch.full_like(rows.top_p, RAS_TEMPERATURE), torch.full_like(rows.top_p, RAS_TOP_P)
    other = _draw(likely, *steady, keys[:, -1])
    repeats = (normal != end) & (rows.recent == normal[:, None]).any(-1)
    return torch.where(rows.temperature == 0, logits.argmax(-1), torch.where(repeats, other, normal))


def draw_code(logits: Tensor, rows: SamplingRows, key: Tensor) -> Tensor:
    """Return for each row an entry of one codebook, from logits [B, codes]."""
    logits = logits.float()
    drawn = _draw(_most_likely(logits), rows.temperature, rows.top_p, key)
    return torch.where(rows.temperature == 0, logits.argmax(-1), drawn)


def draw_keys(rows: SamplingRows, draws: int) -> Tensor:
    """Return a key [B, draws] int64 for each draw of a frame: one a codebook, the last for the main token's second draw."""
    frames = _mixed(_mixed(rows.seed) + rows.frame)
    return _mixed(_mixed(frames[:, None] + torch.arange(draws, device=frames.device)))


def _penalised(logits: Tensor, rows: SamplingRows) -> Tensor:
    """Make recent choices less likely: positive logits are divided by the penalty, negative ones multiplied."""
    choices = logits.shape[-1]
    spoken = torch.zeros(len(logits), choices + 1, dtype=torch.bool, device=logits.device)
    spoken.scatter_(
        1, torch.where(rows.recent == NO_TOKEN, choices, rows.recent), value=True
    )  # the last column is thrown away
    spoken = spoken[:, :choices]
    penalty = rows.repetition_penalty[:, None]
    return torch.where(spoken, torch.where(logits > 0, logits / penalty, logits * penalty), logits)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Likely:
    """The tokens that top-k leaves, most likely first."""

    logits: Tensor  # [B, K]
    tokens: Tensor  # [B, K]
    mass: Tensor  # [B, K], of a token and all before it, at temperature 1


def _most_likely(logits: Tensor) -> _Likely:
    values, tokens = logits.topk(min(TOP_K, logits.shape[-1]), dim=-1)
    mass = torch.exp(values - torch.logsumexp(logits, dim=-1, keepdim=True)).cumsum(-1)
    return _Likely(logits=values, tokens=tokens, mass=mass)


def _draw(likely: _Likely, temperature: Tensor, top_p: Tensor, key: Tensor) -> Tensor:
    dropped = likely.mass > top_p[:, None]
    dropped[:, 0] = False
    scaled = likely.logits / temperature.clamp_min(_MIN_TEMPERATURE)[:, None]
    chances = torch.softmax(scaled.masked_fill(dropped, float("-inf")), dim=-1)
    best = (chances / exponentials(key[:, None], likely.tokens)).argmax(-1, keepdim=True)
    return likely.tokens.gather(-1, best)[:, 0]


def exponentials(key: Tensor, counter: Tensor) -> Tensor:
    """Return exponential variates, float32, one for each (key, counter)."""
    bits = _mixed(key + counter) & 0x7FFFFF  # so that adding a half stays exact, and no variate is zero
    return -torch.log((bits.float() + 0.5) / 2**23)


def _mixed(x: Tensor) -> Tensor:
    """Return a 64-bit hash of each entry: the finaliser of splitmix64, in wrapping int64."""
    x = x + -0x61C8864680B583EB
    x = (x ^ _shifted(x, 30)) * -0x40A7B892E31B1A47
    x = (x ^ _shifted(x, 27)) * -0x6B2FB644ECCEEE15
    return x ^ _shifted(x, 31)


def _shifted(x: Tensor, bits: int) -> Tensor:
    """Shift right without the sign."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)
