"""How keys and values are kept: in pages along time, in a small square along depth, or not at all.

Every form is exact; they differ in what is stored. Two of them decide that a request's frames do not depend on its batch
mates: a prefill runs alone, and a decode goes through the context in spans of one fixed size, so that longer neighbours
add spans that are exact no-ops.
"""

from typing import Final

import torch
import torch.nn.functional as F
from torch import Tensor

from fish_engine.model.config import TransformerConfig

SPAN_POSITIONS: Final = 128
"""Context positions that one step of the decode's running softmax takes in."""


class NoMemory:
    """Plain causal attention of one sequence with itself, x [tokens, …]. For checks: nothing is stored."""

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Mix with a causal mask."""
        return _attend(q.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1), is_causal=True).transpose(0, 1)


class PagedKeyValues:
    """Keys and values of every request, in blocks of `block_size` positions."""

    def __init__(
        self, config: TransformerConfig, *, blocks: int, block_size: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        shape = (config.layers, blocks, block_size, config.kv_heads, config.head_dim)
        self.block_size = block_size
        self.keys = torch.zeros(shape, dtype=dtype, device=device)
        self.values = torch.zeros(shape, dtype=dtype, device=device)

    @staticmethod
    def bytes_per_block(config: TransformerConfig, block_size: int, dtype: torch.dtype) -> int:
        """Return what one block costs over all layers."""
        return 2 * config.layers * block_size * config.kv_heads * config.head_dim * dtype.itemsize

    def write(self, layer: int, slots: Tensor, k: Tensor, v: Tensor) -> None:
        """Store k, v [T, KVH, D] at flat positions `slots` [T] (block x block_size + offset)."""
        self.keys[layer].flatten(0, 1)[slots] = k
        self.values[layer].flatten(0, 1)[slots] = v


class PrefillMemory:
    """A run of positions of one request, after those that are stored already."""

    def __init__(self, store: PagedKeyValues, *, blocks: Tensor, start: int, length: int) -> None:
        """Take the request's table `blocks` [N] int64, and the run `start` .. `start + length`."""
        positions = torch.arange(start + length, device=blocks.device)
        slots = blocks[positions // store.block_size] * store.block_size + positions % store.block_size
        self._store = store
        self._context = slots  # [L]
        self._fresh = slots[start:]  # [T]
        self._mask = positions[None, :] <= positions[start:, None]  # [T, L]

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Store and mix; q [T, H, D]."""
        self._store.write(layer, self._fresh, k, v)
        keys = self._store.keys[layer].flatten(0, 1)[self._context]  # [L, KVH, D]
        values = self._store.values[layer].flatten(0, 1)[self._context]
        return _attend(q.transpose(0, 1), keys.transpose(0, 1), values.transpose(0, 1), mask=self._mask).transpose(0, 1)


class DecodeMemory:
    """One new position for each of several requests. Rows beyond them are padding, and get zeros."""

    def __init__(self, store: PagedKeyValues, *, block_tables: Tensor, positions: Tensor) -> None:
        """Take tables [B, N] int64, padded with any block to whole spans, and the new positions [B or more] int64."""
        size = store.block_size
        positions = positions[: len(block_tables)]
        self._store = store
        self._fresh = block_tables.gather(1, positions[:, None] // size)[:, 0] * size + positions % size  # [B]
        self._spans = torch.split(block_tables, SPAN_POSITIONS // size, dim=1)  # each [B, SPAN / size]
        within = torch.arange(block_tables.shape[1] * size, device=positions.device)
        self._unused = torch.split(within > positions[:, None], SPAN_POSITIONS, dim=1)  # each [B, SPAN]

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Store and mix; q [B, H, D].

        A running softmax over spans: the maximum, the sum and the mix so far are rescaled when a larger score comes. A span
        behind a request's end changes none of the three, not even in the last bit.
        """
        rows, padding = len(self._fresh), len(q) - len(self._fresh)
        q, k, v = q[:rows], k[:rows], v[:rows]
        self._store.write(layer, self._fresh, k, v)
        kv_heads = k.shape[-2]
        q = torch.unflatten(q, 1, (kv_heads, -1)) * q.shape[-1] ** -0.5  # [B, KVH, G, D]
        top = q.new_full(q.shape[:-1], float("-inf"), dtype=torch.float32)  # [B, KVH, G]
        total = torch.zeros_like(top)
        mix = torch.zeros_like(q, dtype=torch.float32)  # [B, KVH, G, D]
        for blocks, unused in zip(self._spans, self._unused, strict=True):
            keys, values = self._span(layer, blocks, unused)
            scores = (q @ keys.transpose(-1, -2)).float()  # [B, KVH, G, SPAN]
            scores = scores.masked_fill(unused[:, None, None, :], float("-inf"))
            new_top = torch.maximum(top, scores.amax(-1))
            weights = torch.exp(scores - new_top[..., None])
            shrink = torch.exp(top - new_top)
            total = total * shrink + weights.sum(-1)
            mix = mix * shrink[..., None] + (weights.to(values.dtype) @ values).float()
            top = new_top
        return F.pad((mix / total[..., None]).to(k.dtype).flatten(1, 2), (0, 0, 0, 0, 0, padding))

    def _span(self, layer: int, blocks: Tensor, unused: Tensor) -> tuple[Tensor, Tensor]:
        """Return keys and values [B, KVH, SPAN, D] of one span."""
        keys = self._store.keys[layer][blocks].flatten(1, 2).transpose(1, 2)
        values = self._store.values[layer][blocks].flatten(1, 2).transpose(1, 2)
        # Zero times whatever another request left there must be zero, and NaN would not be.
        return keys, values.masked_fill(unused[:, None, :, None], 0.0)


class DepthMemory:
    """Keys and values along the depth of one frame, for a batch; begun anew with every frame."""

    def __init__(
        self, config: TransformerConfig, *, rows: int, depth: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        shape = (config.layers, rows, config.kv_heads, depth, config.head_dim)
        self._keys = torch.empty(shape, dtype=dtype, device=device)
        self._values = torch.empty(shape, dtype=dtype, device=device)
        self.filled = 0
        """Depth that is stored; the caller moves it on after each pass."""

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Store and mix; q [B x n, H, D], the n positions after `filled`. More than one only at the start of a frame."""
        rows = self._keys.shape[1]
        q, k, v = (torch.unflatten(part, 0, (rows, -1)).transpose(1, 2) for part in (q, k, v))  # [B, H or KVH, n, D]
        end = self.filled + q.shape[2]
        assert self.filled == 0 or q.shape[2] == 1
        self._keys[layer, :, :, self.filled : end] = k
        self._values[layer, :, :, self.filled : end] = v
        keys, values = self._keys[layer, :, :, :end], self._values[layer, :, :, :end]
        return _attend(q, keys, values, is_causal=q.shape[2] > 1).transpose(1, 2).flatten(0, 1)


def _attend(q: Tensor, k: Tensor, v: Tensor, *, mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
    """Mix values for q [..., H, T, D] with k, v [..., KVH, L, D]."""
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=is_causal, enable_gqa=True)
