"""From a model to a runner, and from a codec to a decoder, with their graphs recorded."""

from collections.abc import Sequence
from typing import Final

import torch

from fish_engine.codec.dac import Codec
from fish_engine.gpu.attention import ContextMask, GatheredMask, PagedMask
from fish_engine.gpu.codec import GraphDecoder, unrecorded
from fish_engine.gpu.runner import BUCKETS, GraphRunner, RecordedStep
from fish_engine.gpu.step import FrameStep, RequestState, StepParts
from fish_engine.gpu.vocoder import Vocoder
from fish_engine.gpu.weights import packed
from fish_engine.kv_cache import blocks_for
from fish_engine.model.attention import PagedKeyValues
from fish_engine.model.dual_ar import DualAR

PAGE_SIZE: Final = 64
"""Positions in a block on a GPU: as many as the attention kernel takes in at a time."""
PADDING_PAGES: Final = 1
"""Pages of the store beyond those of the pool: rows that fill up a bucket write there."""


def graph_runner(
    model: DualAR, store: PagedKeyValues, *, max_positions: int, buckets: Sequence[int] = BUCKETS
) -> GraphRunner:
    """Return a runner for `model`, one graph recorded for each bucket; without CUDA its steps run as they are.

    `store` has `PADDING_PAGES` more than the scheduler hands out. No request may need more than `max_positions`.
    """
    pages = store.keys.shape[1]
    state = RequestState(model.config, pages=pages, device=model.device)
    parts = StepParts(weights=packed(model), config=model.config, im_end_id=model.im_end_id, store=store, state=state)
    table_width = blocks_for(max_positions, store.block_size)
    # Largest first, so that the smaller ones find their temporary memory in its place.
    steps = {rows: _step(parts, rows, table_width) for rows in sorted(buckets, reverse=True)}
    return GraphRunner(model, store, state, _recorded(steps))


def graph_decoder(codec: Codec, *, max_streams: int) -> GraphDecoder:
    """Return a decoder for `codec`: on a GPU its convolutions in bfloat16 and the rest of it in TF32, elsewhere in float32."""
    if codec.device.type == "cpu":
        vocoder = Vocoder(codec, dtype=torch.float32)
        return GraphDecoder(codec, vocoder, max_streams=max_streams, record=unrecorded)
    from fish_engine.gpu.graphs import Recorder, compiled_for_all_sizes  # noqa: PLC0415

    torch.set_float32_matmul_precision("high")
    vocoder = Vocoder(codec, dtype=torch.bfloat16, compiler=compiled_for_all_sizes)
    return GraphDecoder(codec, vocoder, max_streams=max_streams, record=Recorder().record)


def _step(parts: StepParts, rows: int, table_width: int) -> FrameStep:
    device, size = parts.state.columns.device, parts.store.block_size
    if device.type == "cpu":
        return FrameStep(parts, rows=rows, table_width=table_width, mask=GatheredMask(page_size=size))
    from fish_engine.gpu.graphs import compiled  # noqa: PLC0415 - of no use without CUDA

    mask: ContextMask = PagedMask(
        rows=rows, pages=parts.store.keys.shape[1], page_size=size, table_width=table_width, device=device
    )
    return FrameStep(parts, rows=rows, table_width=table_width, mask=mask, compiler=compiled)


@torch.no_grad()
def _recorded(steps: dict[int, FrameStep]) -> dict[int, RecordedStep]:
    if all(step.columns.device.type == "cpu" for step in steps.values()):
        return {rows: RecordedStep(step=step, run=step.run) for rows, step in steps.items()}
    from fish_engine.gpu.graphs import Recorder  # noqa: PLC0415

    recorder = Recorder()
    return {rows: RecordedStep(step=step, run=recorder.record(step.run)) for rows, step in steps.items()}
