"""rms_norm_quantize, silu_mul_quantize and the gate-up GEMM with both in its epilogue."""

import pytest
import torch

from fish_engine import kernels
from fish_engine.kernels import reference

pytestmark = pytest.mark.gpu

QUANTISATION_NOISE = 0.04  # e4m3 keeps three mantissa bits: 2.6 % of Gaussian values, a little more of products


@pytest.mark.parametrize("columns", [384, 1152, 2560, 9728, 16384])
@pytest.mark.parametrize("tokens", [1, 3, 33])
@pytest.mark.parametrize("with_residual", [False, True])
def test_the_norm_is_quantised_and_the_residual_updated(device, tokens, columns, with_residual):
    x = torch.randn(tokens, columns, device=device, dtype=torch.bfloat16)
    weight = torch.rand(columns, device=device, dtype=torch.bfloat16) + 0.5
    residual = torch.randn_like(x) if with_residual else None
    wanted_values, _, wanted_residual = reference.rms_norm_quantize(x, residual, weight, 1e-6)
    values, scales = kernels.rms_norm_quantize(x, weight, 1e-6, residual)
    # The sums of squares differ in order, so a few values round the other way.
    assert (values.view(torch.uint8) != wanted_values.view(torch.uint8)).float().mean() < 0.01
    assert (scales[:, tokens:] == 0).all()
    if residual is not None:
        assert torch.equal(residual, wanted_residual)


def test_the_norm_of_a_row_does_not_depend_on_the_other_rows(device):
    x = torch.randn(65, 2560, device=device, dtype=torch.bfloat16)
    weight = torch.ones(2560, device=device, dtype=torch.bfloat16)
    together, _ = kernels.rms_norm_quantize(x, weight, 1e-6)
    for row in (0, 31, 64):
        alone, _ = kernels.rms_norm_quantize(x[row : row + 1].contiguous(), weight, 1e-6)
        assert torch.equal(together[row].view(torch.uint8), alone[0].view(torch.uint8))


@pytest.mark.parametrize("tokens", [1, 5, 64, 130])
def test_silu_mul_is_quantised(device, relative_error, tokens):
    gate_up = torch.randn(tokens, 2 * 9728, device=device, dtype=torch.bfloat16)
    values, scales = kernels.silu_mul_quantize(gate_up)
    hidden = reference.silu_mul(gate_up)
    assert relative_error(reference.dequantize_activations(values, scales), hidden) < QUANTISATION_NOISE


@pytest.mark.parametrize("tokens", [1, 5, 8, 16, 17, 32, 64, 100, 128, 200])
def test_the_gate_up_epilogue_is_the_separate_kernels_without_their_rounding(make_product, relative_error, tokens):
    product = make_product(19456, 2560, tokens)
    weight = kernels.interleave_gate_up(product.weight)
    values, scales = kernels.gate_up_swiglu_quantize(product.x, product.x_scale, weight, product.weight_scale)
    hidden = reference.silu_mul(product.exact.float())
    wanted_values, wanted_scales = reference.quantize_fp8(hidden)
    assert relative_error(reference.dequantize_activations(values, scales), hidden) < QUANTISATION_NOISE
    # The tensor cores keep 13 bits inside a block of K, so about one value in a hundred rounds the other way.
    assert (values.view(torch.uint8) != wanted_values.view(torch.uint8)).float().mean() < 0.03
    assert torch.allclose(scales, wanted_scales, rtol=2e-3, atol=0)
    assert (scales[:, tokens:] == 0).all()


def test_a_row_of_the_gate_up_epilogue_does_not_depend_on_the_other_rows(make_product):
    product = make_product(19456, 2560, 128)
    weight = kernels.interleave_gate_up(product.weight)
    alone, _ = kernels.gate_up_swiglu_quantize(*_operands(product.head(1)), weight, product.weight_scale)
    for tokens in (2, 8, 9, 17, 33, 65, 128):
        together, _ = kernels.gate_up_swiglu_quantize(*_operands(product.head(tokens)), weight, product.weight_scale)
        assert torch.equal(together[0].view(torch.uint8), alone[0].view(torch.uint8)), tokens


def _operands(product):
    return product.x, product.x_scale
