"""The model's layers as functions of plain tensors: what `model/layers.py` computes, in a form that compiles once for all layers.

They are compiled one by one and not as a whole, because 36 equal layers compile in the time of one.
"""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from fish_engine.gpu.attention import ContextMask
from fish_engine.gpu.weights import LayerWeights, ModelWeights
from fish_engine.model.config import DualARConfig, TransformerConfig
from fish_engine.model.sampling import SamplingRows, draw_code, draw_main


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Normalise the last dimension in float32, return to the dtype of `x`, then scale."""
    wide = x.float()
    normed = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return normed.to(x.dtype) * weight


def rotate(x: Tensor, turns: Tensor) -> Tensor:
    """Rotate neighbouring pairs in float32: x [T, heads, head_dim], turns [T, head_dim / 2, 2].

    Real arithmetic, because the compiler knows no complex numbers.
    """
    even, odd = torch.unflatten(x.float(), -1, (-1, 2)).unbind(-1)  # [T, heads, head_dim / 2] each
    cos, sin = turns[:, None].unbind(-1)
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2).to(x.dtype)


def embed(columns: Tensor, weights: ModelWeights, config: DualARConfig) -> Tensor:
    """Return slow inputs [B, dim] of columns [B, 1 + codebooks]; see `DualAR.embed`."""
    ids, codes = columns[:, 0], columns[:, 1:]
    token = weights.embeddings[ids]
    offsets = torch.arange(config.codebook_count, device=columns.device) * config.codebook_size
    summed = token + weights.codebook_embeddings[codes + offsets].sum(dim=1)
    is_semantic = (ids >= config.semantic_begin_id) & (ids <= config.semantic_end_id)
    return torch.where(is_semantic[:, None], summed / math.sqrt(config.column_rows), token)


def slow_layer(  # noqa: PLR0917 - compiled functions are called by position
    x: Tensor,
    turns: Tensor,
    weights: LayerWeights,
    keys: Tensor,
    values: Tensor,
    newest: Tensor,
    mask: ContextMask,
    config: TransformerConfig,
) -> Tensor:
    """Return x [B, dim] after one slow block; store its keys and values [slots, KVH, D] at slots `newest` [B]."""
    q, k, v = _projected(rms_norm(x, weights.attention_norm, config.norm_eps), turns, weights, config)
    keys[newest] = k
    values[newest] = v
    x = x + F.linear(mask.attend(q, keys, values).flatten(1), weights.out)
    return x + _fed_forward(x, weights, config)


def first_choice(
    x: Tensor, weights: ModelWeights, config: DualARConfig, rows: SamplingRows, keys: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the drawn main choice [B], code 0 [B] and fast inputs [2 * B, dim] from slow outputs x [B, dim].

    Rows of the fast inputs: the two depths of row 0, then those of row 1, and so on.
    """
    hidden = rms_norm(x, weights.slow.norm, config.slow.norm_eps)
    logits = F.linear(hidden, weights.main_head)[:, : config.codebook_size + 1]
    choice = draw_main(logits, rows, keys)
    code = torch.where(choice == config.codebook_size, 0, choice)  # the end of a turn has no code
    if weights.project_in is not None:
        hidden = F.linear(hidden, *weights.project_in)
    return choice, code, torch.stack((hidden, weights.fast_embeddings[code]), dim=1).flatten(0, 1)


def next_code(  # noqa: PLR0917
    x: Tensor,
    depths: Tensor,
    codebook: Tensor,
    weights: ModelWeights,
    memory: Sequence[tuple[Tensor, Tensor]],
    config: TransformerConfig,
    rows: SamplingRows,
    keys: Tensor,
) -> tuple[Tensor, Tensor]:
    """Return the drawn code [B] of `codebook` [1] and the next fast inputs [B, dim], after one pass of the fast stack.

    Shapes: x [B * n, dim] at depths [n]; memory holds keys and values [B, depth, KVH, D] of each layer, written at those depths.
    """
    batch = memory[0][0].shape[0]
    turns = weights.fast.turns[depths].repeat(batch, 1, 1)
    for layer, (keys_of_layer, values_of_layer) in zip(weights.fast.layers, memory, strict=True):
        q, k, v = _projected(rms_norm(x, layer.attention_norm, config.norm_eps), turns, layer, config)
        keys_of_layer[:, depths] = torch.unflatten(k, 0, (batch, -1))
        values_of_layer[:, depths] = torch.unflatten(v, 0, (batch, -1))
        x = x + F.linear(_depth_mix(q, keys_of_layer, values_of_layer, depths), layer.out)
        x = x + _fed_forward(x, layer, config)
    newest = torch.unflatten(x, 0, (batch, -1))[:, -1]
    logits = F.linear(rms_norm(newest, weights.fast.norm, config.norm_eps), weights.fast_head)
    code = draw_code(logits, rows, keys[:, codebook][:, 0])
    return code, weights.fast_embeddings[code]


def _depth_mix(q: Tensor, keys: Tensor, values: Tensor, depths: Tensor) -> Tensor:
    """Return values mixed for q [B * n, H, D] over keys, values [B, depth, KVH, D], as [B * n, H * D].

    Sums of products and no matrix product: with at most ten keys the compiler makes a few small kernels of it. The last
    sum is written out, because so short a reduction is slower than the terms side by side.
    """
    batch, depth, kv_heads, head_dim = keys.shape
    grouped = q.view(batch, -1, kv_heads, q.shape[1] // kv_heads, 1, head_dim).float()  # [B, n, KVH, G, 1, D]
    scores = (grouped * keys.transpose(1, 2)[:, None, :, None].float()).sum(-1) * head_dim**-0.5
    is_later = torch.arange(depth, device=q.device) > depths[:, None]  # [n, depth]
    shares = scores.masked_fill(is_later[:, None, None], -torch.inf).softmax(-1)  # [B, n, KVH, G, depth]
    mixed = torch.zeros_like(grouped[..., 0, :])
    for place in range(depth):
        mixed = mixed + shares[..., place, None] * values[:, None, place, :, None].float()
    return mixed.to(q.dtype).flatten(2).flatten(0, 1)


def _projected(
    x: Tensor, turns: Tensor, weights: LayerWeights, config: TransformerConfig
) -> tuple[Tensor, Tensor, Tensor]:
    """Return rotated queries [T, H, D] and keys [T, KVH, D], and values [T, KVH, D]."""
    heads = torch.unflatten(F.linear(x, weights.qkv), -1, (-1, config.head_dim))  # [T, H + 2 KVH, D]
    q, k, v = torch.split(heads, [config.heads, config.kv_heads, config.kv_heads], dim=1)
    if weights.q_norm is not None and weights.k_norm is not None:
        q, k = rms_norm(q, weights.q_norm, config.norm_eps), rms_norm(k, weights.k_norm, config.norm_eps)
    return rotate(q, turns), rotate(k, turns), v


def _fed_forward(x: Tensor, weights: LayerWeights, config: TransformerConfig) -> Tensor:
    normed = rms_norm(x, weights.ffn_norm, config.norm_eps)
    gate, up = F.linear(normed, weights.gate_up).chunk(2, dim=-1)
    return F.linear(F.silu(gate) * up, weights.down)
