"""Paged attention equals plain attention, and touches nothing that is not its own."""

import itertools

import pytest
import torch

from fish_engine.model.attention import SPAN_POSITIONS, DecodeMemory, NoMemory, PagedKeyValues, PrefillMemory
from fish_engine.model.config import TransformerConfig

CONFIG = TransformerConfig(
    layers=1, heads=4, kv_heads=2, head_dim=8, dim=32, intermediate_dim=1, rope_base=1e4, norm_eps=1e-6, max_positions=999, has_qk_norm=False
)  # fmt: skip
BLOCK = 16
TABLES = ((3, 9, 1, 7, 12, 5, 2, 14, 10, 16), (4, 8, 6, 11, 13, 15, 17, 18, 19, 20))


@pytest.fixture
def store():
    """Pages full of NaN: reading one that was not written shows."""
    pages = PagedKeyValues(CONFIG, blocks=21, block_size=BLOCK, dtype=torch.float32, device=torch.device("cpu"))
    pages.keys.fill_(torch.nan)
    pages.values.fill_(torch.nan)
    return pages


def projections(length, seed):
    generator = torch.Generator().manual_seed(seed)
    shapes = ((length, 4, 8), (length, 2, 8), (length, 2, 8))
    return [torch.randn(shape, generator=generator) for shape in shapes]


def prefill(store, table, q, k, v, start, stop):
    memory = PrefillMemory(store, blocks=torch.tensor(table), start=start, length=stop - start)
    return memory.attend(0, q[start:stop], k[start:stop], v[start:stop])


@pytest.mark.parametrize("cuts", [(0, 150), (0, 40, 41, 150), (0, 16, 128, 150)])
def test_a_prefill_in_any_pieces_equals_plain_attention(store, cuts):
    q, k, v = projections(150, seed=0)
    found = [prefill(store, TABLES[0], q, k, v, start, stop) for start, stop in itertools.pairwise(cuts)]
    torch.testing.assert_close(torch.cat(found), NoMemory().attend(0, q, k, v))


def test_decodes_of_unequal_length_equal_plain_attention_each(store):
    lengths, rows = (150, 21), [projections(150, seed=0), projections(21, seed=1)]
    for table, length, (q, k, v) in zip(TABLES, lengths, rows, strict=True):
        prefill(store, table, q, k, v, 0, length - 1)
    width = 2 * SPAN_POSITIONS // BLOCK
    tables = torch.zeros(2, width, dtype=torch.int64)
    tables[:, : len(TABLES[0])] = torch.tensor(TABLES)
    memory = DecodeMemory(store, block_tables=tables, positions=torch.tensor(lengths) - 1)
    found = memory.attend(0, *(torch.stack([part[-1] for part in parts]) for parts in zip(*rows, strict=True)))
    for row, (q, k, v) in enumerate(rows):
        torch.testing.assert_close(found[row], NoMemory().attend(0, q, k, v)[-1])


def test_a_longer_neighbour_does_not_change_the_last_bit(store):
    q, k, v = projections(21, seed=1)
    prefill(store, TABLES[1], q, k, v, 0, 20)
    found = []
    for spans in (1, 2):
        tables = torch.zeros(1, spans * SPAN_POSITIONS // BLOCK, dtype=torch.int64)
        tables[0, :2] = torch.tensor(TABLES[1][:2])
        memory = DecodeMemory(store, block_tables=tables, positions=torch.tensor([20]))
        found.append(memory.attend(0, q[20:], k[20:], v[20:]))
    assert torch.equal(*found)
