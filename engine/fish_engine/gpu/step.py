"""One frame for every row of a batch of fixed size, from buffers that stay where they are.

    numbers, parameters ─► embed ─► 36 × slow layer ─► draw ─► 9 × fast pass ─► columns
                             ▲                                                    │
                             └───── newest column and window of each request ◄────┘

Nothing here waits for the device: what a step needs of the step before it never leaves it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ParamSpec, Protocol, TypeVar

import torch
from torch import Tensor

from fish_engine.gpu import layers
from fish_engine.gpu.attention import ContextMask
from fish_engine.gpu.weights import ModelWeights
from fish_engine.model.attention import PagedKeyValues
from fish_engine.model.config import DualARConfig
from fish_engine.model.sampling import NO_TOKEN, RAS_WINDOW, SamplingRows, draw_keys

POSITION, FRAME, SEED, HOME, TABLE = range(5)
"""What the columns of a step's numbers mean; from TABLE on they are the row's pages."""
TEMPERATURE, TOP_P, REPETITION_PENALTY, PARAMETERS = range(4)
"""What the columns of a step's parameters mean, and how many there are."""

P = ParamSpec("P")
R = TypeVar("R")


class Compiler(Protocol):
    """What makes a function of tensors faster, for one size of batch."""

    def __call__(self, function: Callable[P, R], /) -> Callable[P, R]:
        """Return a function that computes the same."""
        ...


def uncompiled(function: Callable[P, R], /) -> Callable[P, R]:
    """Return the function as it is: for machines without a GPU, and to check what a compiler made."""
    return function


class RequestState:
    """What the device knows of each request between steps, at the number of its first page: its home."""

    def __init__(self, config: DualARConfig, *, pages: int, device: torch.device) -> None:
        self.columns = torch.zeros(pages, config.column_rows, dtype=torch.int64, device=device)
        """Newest column."""
        self.recent = torch.full((pages, RAS_WINDOW), NO_TOKEN, dtype=torch.int64, device=device)
        """Choices of the last frames but the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepParts:
    """What steps of all sizes share."""

    weights: ModelWeights
    config: DualARConfig
    im_end_id: int
    store: PagedKeyValues
    state: RequestState


class FrameStep:
    """The step for `rows` requests. Fill `numbers` and `parameters`, then `run`, then read `columns`."""

    def __init__(
        self, parts: StepParts, *, rows: int, table_width: int, mask: ContextMask, compiler: Compiler = uncompiled
    ) -> None:
        device = parts.state.columns.device
        self._parts = parts
        self._mask = mask
        self.numbers = torch.zeros(rows, TABLE + table_width, dtype=torch.int64, device=device)
        self.parameters = torch.zeros(rows, PARAMETERS, device=device)
        self.columns = torch.zeros(rows, parts.config.column_rows, dtype=torch.int64, device=device)
        self._slow_memory = [
            (keys.flatten(0, 1), values.flatten(0, 1))
            for keys, values in zip(parts.store.keys, parts.store.values, strict=True)
        ]
        self._fast_memory = _fast_memory(parts, rows)
        self._first_depths = torch.arange(2, device=device)
        # Each on its own, because the compiler wants its inputs aligned.
        self._depths = [torch.full((1,), depth, device=device) for depth in range(parts.config.codebook_count)]
        self._embed = compiler(layers.embed)
        self._slow_layer = compiler(layers.slow_layer)
        self._first_choice = compiler(layers.first_choice)
        self._next_code = compiler(layers.next_code)

    def run(self) -> None:
        """Make the next frame of every row."""
        state, config = self._parts.state, self._parts.config
        homes, frames = self.numbers[:, HOME], self.numbers[:, FRAME]
        recent = state.recent[homes]
        rows = self._sampling_rows(recent)
        choice, codes = self._draw(self._slow_output(state.columns[homes]), rows)
        ids = torch.where(choice == config.codebook_size, self._parts.im_end_id, choice + config.semantic_begin_id)
        self.columns.copy_(torch.stack((ids, *codes), dim=1))
        state.columns[homes] = self.columns
        later = torch.cat((recent[:, 1:], choice[:, None]), dim=1)
        state.recent[homes] = torch.where(frames[:, None] > 0, later, recent)

    def _slow_output(self, columns: Tensor) -> Tensor:
        """Return [B, dim] before the last norm, and store the keys and values of the rows' positions."""
        parts = self._parts
        positions, tables = self.numbers[:, POSITION], self.numbers[:, TABLE:]
        size = parts.store.block_size
        self._mask.update(positions, tables)
        newest = tables.gather(1, positions[:, None] // size)[:, 0] * size + positions % size
        turns = parts.weights.slow.turns[positions]
        x = self._embed(columns, parts.weights, parts.config)
        for layer, (keys, values) in zip(parts.weights.slow.layers, self._slow_memory, strict=True):
            x = self._slow_layer(x, turns, layer, keys, values, newest, self._mask, parts.config.slow)
        return x

    def _draw(self, x: Tensor, rows: SamplingRows) -> tuple[Tensor, list[Tensor]]:
        """Return the main choice [B] and the codes, each [B]."""
        weights, config = self._parts.weights, self._parts.config
        keys = draw_keys(rows, config.codebook_count + 1)
        choice, code, inputs = self._first_choice(x, weights, config, rows, keys)
        codes = [code]
        for codebook in range(1, config.codebook_count):
            depths = self._first_depths if codebook == 1 else self._depths[codebook]
            code, inputs = self._next_code(
                inputs, depths, self._depths[codebook], weights, self._fast_memory, config.fast, rows, keys
            )
            codes.append(code)
        return choice, codes

    def _sampling_rows(self, recent: Tensor) -> SamplingRows:
        return SamplingRows(
            temperature=self.parameters[:, TEMPERATURE].clone(),
            top_p=self.parameters[:, TOP_P].clone(),
            repetition_penalty=self.parameters[:, REPETITION_PENALTY].clone(),
            seed=self.numbers[:, SEED].clone(),
            frame=self.numbers[:, FRAME].clone(),
            recent=recent,
        )


def _fast_memory(parts: StepParts, rows: int) -> list[tuple[Tensor, Tensor]]:
    config, like = parts.config.fast, parts.weights.fast_head
    shape = (rows, parts.config.codebook_count, config.kv_heads, config.head_dim)
    return [(like.new_zeros(shape), like.new_zeros(shape)) for _ in range(config.layers)]
