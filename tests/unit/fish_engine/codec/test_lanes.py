"""A lane's result depends on nothing but the lane, and the convolutions built on that are the textbook's."""

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from fish_engine.codec.carried import Carried, StateLayout
from fish_engine.codec.lanes import FEW_POSITIONS, columns_product, one_thread_per_product, rows_product
from fish_engine.codec.layers import CausalConv, CausalTransposedConv

# Widths that meet every path of a BLAS: one, odd, around its block sizes.
WIDTHS = st.sampled_from([1, 2, 3, 4, 7, 8, 15, 16, 17, 28, 33, 64, 100, 192])
LANES = 7


def normal(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@settings(max_examples=40, deadline=None)
@given(rows=WIDTHS, inputs=WIDTHS, outputs=st.sampled_from([2, 3, 8, 17, 64, 192]), together=st.integers(1, 6))
def test_a_product_of_rows_is_the_same_however_many_lanes_there_are(
    rows: int, inputs: int, outputs: int, together: int
) -> None:
    x, matrix, bias = normal(1, LANES, rows, inputs), normal(2, outputs, inputs), normal(3, outputs)
    with one_thread_per_product():
        whole = rows_product(x, matrix, bias)
        parts = [rows_product(part, matrix, bias) for part in torch.split(x, together)]
    assert torch.equal(torch.cat(parts), whole)


@settings(max_examples=40, deadline=None)
@given(positions=WIDTHS, inputs=WIDTHS, outputs=st.sampled_from([1, 2, 3, 8, 17, 64, 192]), together=st.integers(1, 6))
def test_a_product_of_columns_is_the_same_however_many_lanes_there_are(
    positions: int, inputs: int, outputs: int, together: int
) -> None:
    assume(outputs > 1 or positions >= FEW_POSITIONS)  # a layer with one output has it for every sample of a frame
    x, matrix, bias = normal(1, LANES, inputs, positions), normal(2, outputs, inputs), normal(3, outputs)
    with one_thread_per_product():
        whole = columns_product(matrix, x, bias)
        parts = [columns_product(matrix, part, bias) for part in torch.split(x, together)]
    assert torch.equal(torch.cat(parts), whole)
    torch.testing.assert_close(whole, matrix @ x + bias[:, None], rtol=1e-4, atol=1e-4)


def run(layer: CausalConv | CausalTransposedConv, layout: StateLayout, x: Tensor, frames_at_once: int) -> Tensor:
    """Feed x [frames, channels, positions per frame], some frames at once, and return [channels, all positions]."""
    carried = Carried.at_start(layout, streams=1, device=x.device)
    pieces = []
    for chunk in torch.split(x, frames_at_once):
        carried = carried.followed_by(len(chunk))
        pieces.append(layer(chunk, carried))
    return torch.cat([lane for piece in pieces for lane in piece], dim=1)


@pytest.mark.parametrize(
    ("taps", "stride", "dilation", "positions"),
    [(7, 1, 1, 32), (7, 1, 9, 32), (7, 1, 9, 4), (7, 1, 1, 1), (1, 1, 1, 8), (3, 1, 1, 2), (4, 2, 1, 16), (2, 2, 1, 2)],
)
def test_a_convolution_sees_its_past_across_frames(taps: int, stride: int, dilation: int, positions: int) -> None:
    layout = StateLayout()
    layer = CausalConv(layout, 6, 5, taps=taps, stride=stride, dilation=dilation, is_weight_normed=False)
    weight, bias, x = normal(1, 5, 6, taps), normal(2, 5), normal(3, 9, 6, positions)
    layer.take({"conv.weight": weight, "conv.bias": bias})
    past = (taps - 1) * dilation + 1 - stride
    sound = functional.pad(torch.cat(list(x), dim=1), (past, 0))
    expected = functional.conv1d(sound[None], weight, bias, stride=stride, dilation=dilation)[0]
    whole = run(layer, layout, x, 9)
    torch.testing.assert_close(whole, expected, rtol=1e-5, atol=1e-5)
    assert torch.equal(run(layer, layout, x, 1), whole)
    assert torch.equal(run(layer, layout, x, 4), whole)


@pytest.mark.parametrize(("stride", "seen", "positions"), [(8, 2, 4), (2, 2, 64), (4, 2, 1), (2, 1, 1), (2, 1, 2)])
def test_a_transposed_convolution_sees_the_input_before_across_frames(stride: int, seen: int, positions: int) -> None:
    layout = StateLayout()
    layer = CausalTransposedConv(layout, 6, 5, stride=stride, seen=seen, is_weight_normed=False)
    weight, bias, x = normal(1, 6, 5, seen * stride), normal(2, 5), normal(3, 9, 6, positions)
    layer.take({"conv.weight": weight, "conv.bias": bias})
    expected = functional.conv_transpose1d(torch.cat(list(x), dim=1)[None], weight, bias, stride=stride)[0]
    whole = run(layer, layout, x, 9)
    torch.testing.assert_close(whole, expected[:, : 9 * positions * stride], rtol=1e-5, atol=1e-5)
    assert torch.equal(run(layer, layout, x, 1), whole)
    assert torch.equal(run(layer, layout, x, 4), whole)


def test_spans_of_a_row_do_not_overlap() -> None:
    layout = StateLayout()
    spans = [layout.reserve(3, 4), layout.reserve(2, 0), layout.reserve(5, 1)]
    assert [(span.offset, span.size) for span in spans] == [(0, 12), (12, 0), (12, 5)]
    assert layout.size == 17
