"""The DualAR transformer: a slow stack along time gives the semantic code of a frame, a fast one along depth the other codes.

A position is a column of integers: the main token id, then one code for each codebook (zero where the position is text).
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fish_engine.model.attention import DepthMemory, NoMemory
from fish_engine.model.config import DualARConfig
from fish_engine.model.layers import AttentionMemory, Stack


class SlowModel(Stack):
    """Along time: columns in, hidden states out. Its head is its embedding."""

    def __init__(self, config: DualARConfig) -> None:
        super().__init__(config.slow)
        self.embeddings = _table(config.vocab_size, config.slow.dim)
        self.codebook_embeddings = _table(config.codebook_count * config.codebook_size, config.slow.dim)


class FastModel(Stack):
    """Along depth: hidden state and earlier codes of a frame in, logits of the next code out."""

    def __init__(self, config: DualARConfig) -> None:
        super().__init__(config.fast)
        self.embeddings = _table(config.codebook_size, config.fast.dim)
        self.output = nn.Linear(config.fast.dim, config.codebook_size, bias=False)
        if config.slow.dim != config.fast.dim:
            self.project_in = nn.Linear(config.slow.dim, config.fast.dim)


def _table(rows: int, dim: int) -> nn.Embedding:
    """Return an embedding without initial values: to draw them on the meta device imports torch's compiler, for seconds."""
    return nn.Embedding(rows, dim, _weight=torch.empty(rows, dim))


class DualAR(nn.Module):
    """Both stacks, and the rules that tie them together."""

    def __init__(self, config: DualARConfig, *, im_end_id: int) -> None:
        super().__init__()
        self.config = config
        self.im_end_id = im_end_id
        self.slow = SlowModel(config)
        self.fast = FastModel(config)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.slow.embeddings.weight.device

    @property
    def dtype(self) -> torch.dtype:
        """Of weights and activations."""
        return self.slow.embeddings.weight.dtype

    def embed(self, columns: Tensor) -> Tensor:
        """Return slow inputs [T, dim] of columns [T, 1 + codebooks].

        At a semantic position all codes, number 0 included, are added to the token, and the sum is scaled by their count.
        """
        config = self.config
        ids, codes = columns[:, 0], columns[:, 1:]
        token = self.slow.embeddings(ids)  # [T, dim]
        offsets = torch.arange(config.codebook_count, device=columns.device) * config.codebook_size
        summed = token + self.slow.codebook_embeddings(codes + offsets).sum(dim=1)
        is_semantic = (ids >= config.semantic_begin_id) & (ids <= config.semantic_end_id)
        return torch.where(is_semantic[:, None], summed / math.sqrt(config.column_rows), token)

    def slow_hidden(self, columns: Tensor, positions: Tensor, memory: AttentionMemory) -> Tensor:
        """Return hidden states [T, dim] after the final norm, for columns [T, 1 + codebooks] at positions [T]."""
        return self.slow.run(self.embed(columns), positions, memory)

    def main_logits(self, hidden: Tensor) -> Tensor:
        """Return logits [B, codebook_size + 1] of what may follow: each semantic id, and last the end of the turn."""
        config, head = self.config, self.slow.embeddings.weight
        semantic = F.linear(hidden, head[config.semantic_begin_id : config.semantic_end_id + 1])
        end = F.linear(hidden, head[self.im_end_id : self.im_end_id + 1])
        return torch.cat((semantic, end), dim=-1)

    def main_ids(self, choice: Tensor) -> Tensor:
        """Return token ids for indices into `main_logits`."""
        is_end = choice == self.config.codebook_size
        return torch.where(is_end, self.im_end_id, choice + self.config.semantic_begin_id)

    def first_codes(self, ids: Tensor) -> Tensor:
        """Return code 0 for main token ids; clamped, because the end of a turn has none."""
        return (ids - self.config.semantic_begin_id).clamp(0, self.config.codebook_size - 1)

    def depth_memory(self, rows: int) -> DepthMemory:
        """Return an empty memory for one frame of `rows` requests."""
        depth = self.config.codebook_count
        return DepthMemory(self.config.fast, rows=rows, depth=depth, dtype=self.dtype, device=self.device)

    def fast_start(self, hidden: Tensor, codes: Tensor) -> Tensor:
        """Return fast inputs [B, 1 + n, dim] of a frame: the slow hidden state [B, slow dim], then codes [B, n]."""
        if self.config.slow.dim != self.config.fast.dim:
            hidden = self.fast.project_in(hidden)
        return torch.cat((hidden[:, None], self.fast.embeddings(codes)), dim=1)

    def fast_logits(self, inputs: Tensor, memory: DepthMemory) -> Tensor:
        """Return logits [B, n, codes] for fast inputs [B, n, dim], and count them as stored."""
        rows, depth = inputs.shape[:2]
        positions = torch.arange(memory.filled, memory.filled + depth, device=inputs.device).repeat(rows)
        logits: Tensor = self.fast.output(self.fast.run(inputs.flatten(0, 1), positions, memory))
        memory.filled += depth
        return torch.unflatten(logits, 0, (rows, depth))


def trace(model: DualAR, prompt: Tensor, frames: Tensor) -> tuple[Tensor, Tensor]:
    """Return every logit of a known continuation, in one pass and without any cache: what a golden vector is compared with.

    Shapes: prompt [T, 1 + codebooks], frames [F, 1 + codebooks]; slow logits [F, vocab_size] before any mask, fast logits
    [F, codebooks, codes], of which row 0 is the output that decoding discards.
    """
    with torch.inference_mode():
        columns = torch.cat((prompt, frames[:-1]))
        positions = torch.arange(len(columns), device=columns.device)
        hidden = model.slow_hidden(columns, positions, NoMemory())[len(prompt) - 1 :]  # [F, dim]
        slow = F.linear(hidden, model.slow.embeddings.weight)
        inputs = model.fast_start(hidden, frames[:, 1:-1])
        return slow, model.fast_logits(inputs, model.depth_memory(len(frames)))
