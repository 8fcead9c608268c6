import pytest
import torch

from fish_engine import kernels
from fish_engine.kernels import layout, reference
from fish_engine.kernels.errors import OperandError


def checkpoint(rows=512, columns=384):
    return reference.quantize_weight(torch.randn(rows, columns, generator=torch.Generator().manual_seed(1)))


def test_a_checkpoint_weight_passes_unchanged():
    weight, scale = checkpoint()
    assert kernels.process_weights_after_loading(weight, scale) == (weight, scale)


def test_a_scale_with_other_strides_raises_and_both_strides_are_named():
    weight, scale = checkpoint()
    restrided = scale.t().contiguous().t()  # the right numbers, laid out by columns
    assert torch.equal(restrided, scale)
    with pytest.raises(OperandError, match=r"strides \[3, 1\].*strides \[1, 4\]"):
        kernels.process_weights_after_loading(weight, restrided)


def test_a_transposed_scale_raises():
    weight, scale = checkpoint()
    with pytest.raises(OperandError, match=r"expected shape \[4, 3\].*found shape \[3, 4\]"):
        kernels.process_weights_after_loading(weight, scale.t())


def test_a_transposed_square_scale_raises_by_its_strides():
    weight, scale = checkpoint(384, 384)
    with pytest.raises(OperandError, match=r"expected shape \[3, 3\] with strides \[3, 1\].*strides \[1, 3\]"):
        kernels.process_weights_after_loading(weight, scale.t())


def test_a_one_column_scale_with_an_odd_stride_raises():
    weight, scale = checkpoint(512, 128)
    odd = torch.as_strided(scale, (4, 1), (1, 4))
    with pytest.raises(OperandError, match=r"expected strides \[1, 1\], found \[1, 4\]"):
        kernels.process_weights_after_loading(weight, odd)


@pytest.mark.parametrize(("value", "position"), [(float("nan"), (0, 0)), (0.0, (3, 2)), (-1.0, (1, 1))])
def test_a_scale_that_is_no_scale_raises(value, position):
    weight, scale = checkpoint()
    scale[position] = value
    with pytest.raises(OperandError, match="finite scales above 0"):
        kernels.process_weights_after_loading(weight, scale)


@pytest.mark.parametrize(
    ("rows", "columns", "message"),
    [(96, 256, "N .rows of weight.*multiple of 64.*found 96"), (128, 320, "K .columns.*multiple of 128.*found 320")],
)
def test_a_size_that_no_tile_covers_raises(rows, columns, message):
    weight = torch.zeros(rows, columns).to(torch.float8_e4m3fn)
    with pytest.raises(OperandError, match=message):
        kernels.process_weights_after_loading(weight, torch.ones(1, 2))


def test_interleaving_puts_eight_gate_rows_before_the_eight_up_rows_of_the_same_columns():
    weight = torch.arange(256)[:, None].expand(256, 128).to(torch.uint8).contiguous()
    order = kernels.interleave_gate_up(weight)[:, 0].tolist()
    assert order[:24] == [*range(8), *range(128, 136), *range(8, 16)]


def test_interleaving_can_be_undone():
    weight, _ = checkpoint(512, 256)
    there_and_back = layout.separate_gate_up(kernels.interleave_gate_up(weight))
    assert torch.equal(there_and_back.view(torch.uint8), weight.view(torch.uint8))


def test_mx_scales_keep_four_blocks_of_k_in_a_word_and_can_be_undone():
    exponents = torch.arange(5 * 8, dtype=torch.uint8).view(5, 8)
    packed = layout.pack_mx_scales(exponents)
    assert packed.shape == (2, 8)
    assert packed[1, 2].item() == int.from_bytes(bytes(exponents[2, 4:].tolist()), "little")
    assert torch.equal(layout.unpack_mx_scales(packed, 5), exponents)
