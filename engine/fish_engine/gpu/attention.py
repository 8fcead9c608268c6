"""Attention of one new position for each row over paged keys and values, in two forms with one result.

`PagedMask` is for a GPU: FlexAttention, compiled into the layer, walks a row's pages and nothing else. `GatheredMask` copies
the pages out and is a check of the other on any machine.
"""

from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, flex_attention

_QUERIES_PER_BLOCK = 128


class ContextMask(Protocol):
    """Which stored positions each row sees; updated in place before a step, so that a captured graph reads the new ones."""

    def update(self, positions: Tensor, tables: Tensor) -> None:
        """Take each row's newest position [B] and its table of pages [B, N]."""
        ...

    def attend(self, q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Mix `values` [slots, KVH, D] for q [B, H, D]."""
        ...


class PagedMask:
    """Of each row the pages up to its newest position, and of the last page the part up to it."""

    def __init__(self, *, rows: int, pages: int, page_size: int, table_width: int, device: torch.device) -> None:
        self._page_size = page_size
        self._newest = torch.zeros(rows, dtype=torch.int32, device=device)
        self._page_end = torch.zeros(rows, dtype=torch.int32, device=device)
        self._page_counts = torch.ones(rows, 1, 1, dtype=torch.int32, device=device)
        self._tables = torch.zeros(rows, 1, 1, table_width, dtype=torch.int32, device=device)
        newest, page_end = self._newest, self._page_end

        def is_seen(row: Tensor, _head: Tensor, _query: Tensor, slot: Tensor) -> Tensor:
            return (slot <= newest[row]) | (slot >= page_end[row])

        self._block_mask = BlockMask.from_kv_blocks(
            self._page_counts,
            self._tables,
            BLOCK_SIZE=(_QUERIES_PER_BLOCK, page_size),
            mask_mod=is_seen,
            seq_lengths=(1, pages * page_size),
            compute_q_blocks=False,
        )

    def update(self, positions: Tensor, tables: Tensor) -> None:  # noqa: D102 - as the protocol says
        page = positions // self._page_size
        last = tables.gather(1, page[:, None])[:, 0] * self._page_size
        self._newest.copy_(last + positions % self._page_size)
        self._page_end.copy_(last + self._page_size)
        self._page_counts.copy_((page + 1)[:, None, None])
        self._tables.copy_(tables[:, None, None])

    def attend(self, q: Tensor, keys: Tensor, values: Tensor) -> Tensor:  # noqa: D102
        k, v = keys.transpose(0, 1)[None], values.transpose(0, 1)[None]  # [1, KVH, slots, D]
        mixed = flex_attention(q[:, :, None], k, v, block_mask=self._block_mask, enable_gqa=True)
        assert isinstance(mixed, Tensor)
        return mixed[:, :, 0]


class GatheredMask:
    """The same by copying: every row's whole table, masked behind its newest position."""

    def __init__(self, *, page_size: int) -> None:
        self._page_size = page_size

    def update(self, positions: Tensor, tables: Tensor) -> None:  # noqa: D102
        offsets = torch.arange(self._page_size, device=tables.device)
        self._slots = (tables[..., None] * self._page_size + offsets).flatten(1)  # [B, L]
        self._is_seen = torch.arange(self._slots.shape[1], device=tables.device) <= positions[:, None]

    def attend(self, q: Tensor, keys: Tensor, values: Tensor) -> Tensor:  # noqa: D102
        k, v = keys[self._slots].transpose(1, 2), values[self._slots].transpose(1, 2)  # [B, KVH, L, D]
        mask = self._is_seen[:, None, None]
        return F.scaled_dot_product_attention(q[:, :, None], k, v, attn_mask=mask, enable_gqa=True)[:, :, 0]
