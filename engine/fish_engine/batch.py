"""From a step plan to tensors: the only place where lists become tensors."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import torch
from torch import Tensor

from fish_engine.model.attention import SPAN_POSITIONS
from fish_engine.model.sampling import NO_TOKEN, RAS_WINDOW, SamplingParams, SamplingRows
from fish_engine.scheduler import Extension

_PADDING: Final = SamplingParams(temperature=0.0)


@dataclass(slots=True, kw_only=True)
class Utterance:
    """What one request has said: the columns of its prompt, then of its frames."""

    prompt: Tensor  # [prompt_len, 1 + codebooks] int64
    frame_limit: int
    sampling: SamplingParams
    frames_made: int = 0
    columns: Tensor = field(init=False)  # [prompt_len + frame_limit, 1 + codebooks] int64, filled as frames come

    def __post_init__(self) -> None:
        """Set room aside for every frame, so that adding one copies nothing else."""
        self.columns = torch.cat((self.prompt, self.prompt.new_zeros(self.frame_limit, self.prompt.shape[1])))

    def add(self, frame: Tensor) -> None:
        """Append the column of a new frame."""
        self.columns[len(self.prompt) + self.frames_made] = frame
        self.frames_made += 1

    def codes(self) -> Tensor:
        """Return the codes [codebooks, frames] of all frames so far."""
        return self.columns[len(self.prompt) : len(self.prompt) + self.frames_made, 1:].T

    def recent_ids(self) -> Tensor:
        """Return the main ids of the last `RAS_WINDOW` frames, without the first frame of all."""
        end = len(self.prompt) + self.frames_made
        return self.columns[max(len(self.prompt) + 1, end - RAS_WINDOW) : end, 0]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillBatch:
    """A run of known columns of one request."""

    columns: Tensor  # [T, 1 + codebooks]
    positions: Tensor  # [T]
    blocks: Tensor  # [N], the request's table
    start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeBatch:
    """The newest column of several requests; `columns` and `positions` are padded to a bucket of rows."""

    columns: Tensor  # [B, 1 + codebooks]
    positions: Tensor  # [B]
    block_tables: Tensor  # [requests, N], padded with block 0 to whole spans, which is not read there


def prefill_batch(extension: Extension, utterance: Utterance, device: torch.device) -> PrefillBatch:
    """Return the tensors of one prefill."""
    end = extension.start + extension.length
    return PrefillBatch(
        columns=utterance.columns[extension.start : end].to(device),
        positions=torch.arange(extension.start, end, device=device),
        blocks=torch.tensor(extension.blocks, device=device),
        start=extension.start,
    )


def decode_batch(
    extensions: Sequence[Extension],
    utterances: Sequence[Utterance],
    *,
    rows: int,
    block_size: int,
    device: torch.device,
) -> DecodeBatch:
    """Return the tensors of a decode of at most `rows` requests."""
    columns = torch.zeros(rows, utterances[0].columns.shape[1], dtype=torch.int64)
    positions = torch.zeros(rows, dtype=torch.int64)
    blocks_per_span = SPAN_POSITIONS // block_size
    spans = -(-max(len(extension.blocks) for extension in extensions) // blocks_per_span)
    tables = torch.zeros(len(extensions), spans * blocks_per_span, dtype=torch.int64)
    for row, (extension, utterance) in enumerate(zip(extensions, utterances, strict=True)):
        columns[row] = utterance.columns[extension.start]
        positions[row] = extension.start
        tables[row, : len(extension.blocks)] = torch.tensor(extension.blocks)
    return DecodeBatch(columns=columns.to(device), positions=positions.to(device), block_tables=tables.to(device))


def sampling_rows(
    utterances: Sequence[Utterance], *, rows: int, semantic_begin_id: int, device: torch.device
) -> SamplingRows:
    """Return the parameters of a draw for at most `rows` requests, padded with greedy ones."""
    padding = rows - len(utterances)
    params = [utterance.sampling for utterance in utterances] + [_PADDING] * padding
    recent = torch.full((rows, RAS_WINDOW), NO_TOKEN, dtype=torch.int64)
    for row, utterance in enumerate(utterances):
        ids = utterance.recent_ids()
        recent[row, : len(ids)] = ids - semantic_begin_id
    return SamplingRows(
        temperature=torch.tensor([param.temperature for param in params], device=device),
        top_p=torch.tensor([param.top_p for param in params], device=device),
        repetition_penalty=torch.tensor([param.repetition_penalty for param in params], device=device),
        seed=torch.tensor([param.seed for param in params], device=device),
        frame=torch.tensor([utterance.frames_made for utterance in utterances] + [0] * padding, device=device),
        recent=recent.to(device),
    )
