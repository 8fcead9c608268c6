"""The weights of a model as plain tensors, in the layouts that a step on a GPU multiplies with."""

from typing import Final, NamedTuple

import torch
from torch import Tensor

from fish_engine.model.dual_ar import DualAR
from fish_engine.model.layers import Block, Stack

_HEAD_MULTIPLE: Final = 8
"""Rows of a head are filled up to a multiple of this: matrix products of odd widths are slow."""


class LayerWeights(NamedTuple):
    """One transformer block."""

    attention_norm: Tensor
    qkv: Tensor
    q_norm: Tensor | None
    k_norm: Tensor | None
    out: Tensor
    ffn_norm: Tensor
    gate_up: Tensor  # [2 * intermediate, dim]
    down: Tensor


class StackWeights(NamedTuple):
    """Blocks in a row, the norm after them, and the turns of every position."""

    layers: tuple[LayerWeights, ...]
    norm: Tensor
    turns: Tensor  # [positions, head_dim / 2, 2]


class ModelWeights(NamedTuple):
    """Both stacks and what stands between them."""

    slow: StackWeights
    fast: StackWeights
    embeddings: Tensor
    codebook_embeddings: Tensor
    main_head: Tensor  # [semantic ids, the end, filling; dim]
    project_in: tuple[Tensor, Tensor] | None
    fast_embeddings: Tensor
    fast_head: Tensor


def packed(model: DualAR) -> ModelWeights:
    """Return the weights of `model`; its gates and ups become views of one matrix a layer, so nothing is held twice."""
    config, fast = model.config, model.fast
    embeddings = model.slow.embeddings.weight.data
    semantic = embeddings[config.semantic_begin_id : config.semantic_end_id + 1]
    filling = embeddings.new_zeros(-(config.codebook_size + 1) % _HEAD_MULTIPLE, config.slow.dim)
    has_projection = config.slow.dim != config.fast.dim
    return ModelWeights(
        slow=_stack(model.slow),
        fast=_stack(fast),
        embeddings=embeddings,
        codebook_embeddings=model.slow.codebook_embeddings.weight.data,
        main_head=torch.cat((semantic, embeddings[model.im_end_id, None], filling)),
        project_in=(fast.project_in.weight.data, fast.project_in.bias.data) if has_projection else None,
        fast_embeddings=fast.embeddings.weight.data,
        fast_head=fast.output.weight.data,
    )


def _stack(stack: Stack) -> StackWeights:
    layers = tuple(_layer(block) for block in stack.layers if isinstance(block, Block))
    return StackWeights(layers=layers, norm=stack.norm.weight.data, turns=torch.view_as_real(stack.rope).contiguous())


def _layer(block: Block) -> LayerWeights:
    attention, feed_forward = block.attention, block.feed_forward
    has_qk_norm = attention.config.has_qk_norm
    gate_up = torch.cat((feed_forward.w1.weight.data, feed_forward.w3.weight.data))
    feed_forward.w1.weight.data, feed_forward.w3.weight.data = gate_up.chunk(2)
    return LayerWeights(
        attention_norm=block.attention_norm.weight.data,
        qkv=attention.wqkv.weight.data,
        q_norm=attention.q_norm.weight.data if has_qk_norm else None,
        k_norm=attention.k_norm.weight.data if has_qk_norm else None,
        out=attention.wo.weight.data,
        ffn_norm=block.ffn_norm.weight.data,
        gate_up=gate_up,
        down=feed_forward.w2.weight.data,
    )
