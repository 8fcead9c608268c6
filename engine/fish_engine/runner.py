"""Runs a step plan on the model: the slow step for every position, then the draw and the fast loop for every new frame.

    prefill 1 ─┐
    prefill 2 ─┼─ hidden states [B, dim] ── main token ── 9 fast passes ── columns [B, 1 + codebooks]
    decodes   ─┘

Batches are padded to buckets. Rows of one bucket do not influence each other, and a row computed in one bucket is the same
to the last bit whoever fills the others; so on a CPU, where one bucket serves all, a request makes the same frames alone
and in a crowd.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import torch
import torch.nn.functional as F
from torch import Tensor

from fish_engine.batch import Utterance, decode_batch, prefill_batch, sampling_rows
from fish_engine.model.attention import DecodeMemory, PagedKeyValues, PrefillMemory
from fish_engine.model.dual_ar import DualAR
from fish_engine.model.sampling import SamplingRows, draw_code, draw_keys, draw_main
from fish_engine.scheduler import Extension, StepPlan

CPU_BUCKETS: Final = (16,)
"""One size, because matrix products of few rows take other code paths and round otherwise."""
GPU_BUCKETS: Final = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True, slots=True)
class Landed:
    """Frames that are there."""

    _columns: dict[int, Tensor]

    def columns(self) -> dict[int, Tensor]:
        """Return the new column [1 + codebooks] of each request that drew a frame."""
        return self._columns


class Runner:
    """Holds the model and the pages; the plan says which request has which."""

    lookahead: Final = 0
    """A step is done when it has been launched, so nothing is gained by launching the next one blindly."""

    def __init__(self, model: DualAR, store: PagedKeyValues) -> None:
        self.model = model
        self._store = store
        self._buckets = CPU_BUCKETS if model.device.type == "cpu" else GPU_BUCKETS
        self._largest = self._buckets[-1]

    def launch(self, plan: StepPlan, utterances: Mapping[int, Utterance]) -> Landed:
        """Run a plan and return what holds the new columns."""
        return Landed(self.run(plan, utterances))

    @torch.inference_mode()
    def run(self, plan: StepPlan, utterances: Mapping[int, Utterance]) -> dict[int, Tensor]:
        """Return the new column [1 + codebooks] of every request that draws a frame in this plan; nothing else changes."""
        drawing: list[int] = []
        hidden: list[Tensor] = []
        for extension in plan.prefills:
            last = self._prefill(extension, utterances[extension.request_id])
            if extension.draws_frame:
                drawing.append(extension.request_id)
                hidden.append(last)
        for start in range(0, len(plan.decodes), self._largest):
            group = plan.decodes[start : start + self._largest]
            drawing += [extension.request_id for extension in group]
            hidden.append(self._decode(group, [utterances[extension.request_id] for extension in group]))
        if not drawing:
            return {}
        columns = self._draw(torch.cat(hidden), [utterances[request_id] for request_id in drawing])
        return dict(zip(drawing, columns.cpu().unbind(0), strict=True))

    def _prefill(self, extension: Extension, utterance: Utterance) -> Tensor:
        """Return the hidden state [1, dim] of the last position."""
        batch = prefill_batch(extension, utterance, self.model.device)
        memory = PrefillMemory(self._store, blocks=batch.blocks, start=batch.start, length=extension.length)
        return self.model.slow_hidden(batch.columns, batch.positions, memory)[-1:]

    def _decode(self, extensions: Sequence[Extension], utterances: Sequence[Utterance]) -> Tensor:
        """Return hidden states [B, dim]."""
        batch = decode_batch(
            extensions,
            utterances,
            rows=self._bucket(len(extensions)),
            block_size=self._store.block_size,
            device=self.model.device,
        )
        memory = DecodeMemory(self._store, block_tables=batch.block_tables, positions=batch.positions)
        return self.model.slow_hidden(batch.columns, batch.positions, memory)[: len(extensions)]

    def _draw(self, hidden: Tensor, utterances: Sequence[Utterance]) -> Tensor:
        """Return new columns [B, 1 + codebooks] for hidden states [B, dim]."""
        starts = range(0, len(utterances), self._largest)
        parts = [slice(start, start + self._largest) for start in starts]
        return torch.cat([self._draw_bucket(hidden[part], utterances[part]) for part in parts])

    def _draw_bucket(self, hidden: Tensor, utterances: Sequence[Utterance]) -> Tensor:
        count = len(utterances)
        rows = sampling_rows(
            utterances,
            rows=self._bucket(count),
            semantic_begin_id=self.model.config.semantic_begin_id,
            device=hidden.device,
        )
        padded = F.pad(hidden, (0, 0, 0, self._bucket(count) - count))
        return draw_frames(self.model, padded, rows)[:count]

    def _bucket(self, count: int) -> int:
        return next(size for size in self._buckets if size >= count)


def draw_frames(model: DualAR, hidden: Tensor, rows: SamplingRows) -> Tensor:
    """Return one new column [B, 1 + codebooks] a row, from slow hidden states [B, dim].

    Depths 0 and 1 are one pass of two positions: the output at depth 0 is discarded, so it need not be waited for.
    """
    keys = draw_keys(rows, model.config.codebook_count + 1)
    ids = model.main_ids(draw_main(model.main_logits(hidden), rows, keys))  # [B]
    codes = [model.first_codes(ids)]
    memory = model.depth_memory(len(hidden))
    inputs = model.fast_start(hidden, codes[0][:, None])  # [B, 2, dim]
    for codebook in range(1, model.config.codebook_count):
        logits = model.fast_logits(inputs, memory)[:, -1]
        codes.append(draw_code(logits, rows, keys[:, codebook]))
        inputs = model.fast.embeddings(codes[-1])[:, None]
    return torch.stack((ids, *codes), dim=-1)
