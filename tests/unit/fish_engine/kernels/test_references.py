"""The references themselves: GPU tests lean on them, so they are held to what quantising is."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fish_engine import kernels
from fish_engine.kernels import reference

E4M3_NOISE = 0.027  # three mantissa bits, on Gaussian values
BF16_ROUNDING = 2.0e-3


def gaussian(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).bfloat16()


def relative_error(found, wanted):
    return ((found.double() - wanted.double()).norm() / wanted.double().norm()).item()


def test_quantising_keeps_what_three_mantissa_bits_keep():
    x = gaussian(5, 384)
    values, scales = kernels.quantize_fp8(x)
    assert relative_error(reference.dequantize_activations(values, scales), x) < E4M3_NOISE


def test_scales_are_k_major_and_their_padding_is_zero():
    _, scales = kernels.quantize_fp8(gaussian(5, 384))
    assert scales.shape == (3, 8)
    assert (scales[:, :5] > 0).all()
    assert (scales[:, 5:] == 0).all()


@settings(max_examples=50, deadline=None)
@given(amax=st.floats(min_value=2.0**-30, max_value=2.0**20, width=32), seed=st.integers(0, 2**16))
def test_the_largest_value_of_a_block_always_becomes_448(amax, seed):
    x = torch.rand(1, 128, generator=torch.Generator().manual_seed(seed)) * amax / 2
    x[0, seed % 128] = amax
    values, _ = reference.quantize_fp8(x)
    assert values.float().max() == 448


def test_a_block_of_zeros_has_a_finite_scale():
    values, scales = kernels.quantize_fp8(torch.zeros(1, 128, dtype=torch.bfloat16))
    assert (values.float() == 0).all()
    assert torch.isfinite(scales).all()


def test_nan_stays_in_its_element_and_infinity_poisons_its_block():
    x = torch.ones(2, 128, dtype=torch.bfloat16)
    x[0, 3], x[1, 5] = float("nan"), float("inf")
    values, scales = kernels.quantize_fp8(x)
    assert values[0].float().isnan().sum() == 1
    assert scales[0, 0] < 1
    assert scales[0, 1].isinf()


def test_the_scale_of_a_short_last_block_of_rows_sees_its_last_row():
    weight = torch.zeros(192, 128)
    weight[191, 7] = 448
    _, scale = reference.quantize_weight(weight)
    assert scale[1, 0] == 1


def test_the_gemm_multiplies_what_the_operands_dequantise_to():
    x, weight = gaussian(7, 384), gaussian(192, 384)
    values, scales = kernels.quantize_fp8(x)
    w, w_scale = reference.quantize_weight(weight)
    exact = (
        reference.dequantize_activations(values, scales).double() @ reference.dequantize_weight(w, w_scale).double().t()
    )
    assert relative_error(kernels.fp8_gemm_blockscaled(values, scales, w, w_scale), exact) < BF16_ROUNDING


def test_bf16_activations_leave_the_noise_of_the_weight_only():
    x, weight = gaussian(7, 384), gaussian(192, 384)
    exact = x.double() @ weight.double().t()
    w, w_scale = reference.quantize_weight(weight)
    both = relative_error(kernels.fp8_gemm_blockscaled(*kernels.quantize_fp8(x), w, w_scale), exact)
    weight_only = relative_error(kernels.w8a16_gemm_blockscaled(x, w, w_scale), exact)
    assert weight_only < both / 1.2


def test_the_residual_is_added():
    x, residual = gaussian(3, 128), gaussian(3, 64)
    w, w_scale = reference.quantize_weight(gaussian(64, 128))
    without = kernels.w8a16_gemm_blockscaled(x, w, w_scale)
    with_residual = kernels.w8a16_gemm_blockscaled(x, w, w_scale, residual)
    assert relative_error(with_residual, without.float() + residual.float()) < 2 * BF16_ROUNDING


def test_the_fused_gate_up_is_the_separate_ops_without_their_rounding():
    x = kernels.quantize_fp8(gaussian(4, 256))
    weight, scale = reference.quantize_weight(gaussian(512, 256))
    fused = kernels.gate_up_swiglu_quantize(*x, kernels.interleave_gate_up(weight), scale)
    separate = kernels.silu_mul_quantize(kernels.fp8_gemm_blockscaled(*x, weight, scale))
    hidden = [reference.dequantize_activations(values, scales) for values, scales in (fused, separate)]
    assert relative_error(hidden[0], hidden[1]) < E4M3_NOISE


def test_the_norm_reads_and_replaces_the_residual():
    x, residual, weight = gaussian(3, 256), gaussian(3, 256), gaussian(256)
    before = residual.clone()
    values, scales = kernels.rms_norm_quantize(x, weight, 1e-6, residual)
    summed = (x.float() + before.float()).bfloat16()
    assert torch.equal(residual, summed)
    wide = summed.double()
    exact = wide / (wide.square().mean(-1, keepdim=True) + 1e-6).sqrt() * weight.double()
    assert relative_error(reference.dequantize_activations(values, scales), exact) < E4M3_NOISE


def test_mx_scales_are_the_smallest_powers_of_two_that_do_not_saturate():
    x = torch.zeros(4, 128, dtype=torch.bfloat16)
    x[0, 0], x[1, 0], x[2, 0] = 448.0, 449.0 + 1, 1.0
    values, scales = kernels.quantize_mxfp8(x)
    exponents = scales[0, :4] & 0xFF
    assert exponents.tolist() == [127, 128, 127 - 8, 0]
    assert relative_error(reference.dequantize_mxfp8(values, scales)[:3, 0], x[:3, 0]) < 0.04


@settings(max_examples=30, deadline=None)
@given(exponent=st.integers(-60, 60), seed=st.integers(0, 2**16))
def test_mx_quantising_never_saturates(exponent, seed):
    x = (torch.randn(2, 128, generator=torch.Generator().manual_seed(seed)) * 2.0**exponent).bfloat16()
    assert relative_error(reference.dequantize_mxfp8(*kernels.quantize_mxfp8(x)), x) < 0.04


def test_the_mx_gemm_multiplies_what_the_operands_dequantise_to():
    x, weight = kernels.quantize_mxfp8(gaussian(5, 256)), kernels.quantize_mxfp8(gaussian(64, 256))
    exact = reference.dequantize_mxfp8(*x).double() @ reference.dequantize_mxfp8(*weight).double().t()
    assert relative_error(kernels.mxfp8_gemm(*x, *weight), exact) < BF16_ROUNDING


def test_the_ops_can_be_traced_without_data():
    with torch.device("meta"):
        x = torch.empty(5, 256, dtype=torch.bfloat16)
        weight, scale = torch.empty(512, 256, dtype=torch.float8_e4m3fn), torch.empty(4, 2)
        hidden, hidden_scale = kernels.gate_up_swiglu_quantize(*kernels.quantize_fp8(x), weight, scale)
        product = kernels.fp8_gemm_blockscaled(*kernels.quantize_fp8(x), weight, scale)
        _, mx_scale = kernels.quantize_mxfp8(x)
    assert (hidden.shape, hidden.dtype) == ((5, 256), torch.float8_e4m3fn)
    assert hidden_scale.shape == (2, 8)
    assert (product.shape, product.dtype) == ((5, 512), torch.bfloat16)
    assert (mx_scale.shape, mx_scale.dtype) == ((2, 8), torch.int32)
