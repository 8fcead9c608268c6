import pytest
import torch
from torch import nn

from fish_engine.kernels.linear import ActivationFormat, BlockScaledLinear, block_scaled, linear, quantize_linears

WEIGHT_NOISE, BOTH_NOISE = 0.03, 0.042  # of e4m3 in one operand, in both


def model():
    torch.manual_seed(0)
    layers = nn.Sequential(
        nn.Linear(256, 128, bias=False), nn.SiLU(), nn.Linear(128, 64, bias=False), nn.Linear(64, 10)
    )
    return layers.bfloat16()


@pytest.mark.parametrize(
    ("activations", "noise"), [(ActivationFormat.FP8, BOTH_NOISE), (ActivationFormat.BF16, WEIGHT_NOISE)]
)
def test_a_block_scaled_layer_is_the_layer_up_to_the_noise_of_quantising(activations, noise):
    linear = model()[0]
    x = torch.randn(2, 3, 256).bfloat16()
    wanted = linear(x).float()
    wrapper = nn.Sequential(linear)
    quantize_linears(wrapper, activations)
    found = wrapper[0](x)
    assert found.shape == wanted.shape
    assert (found.float() - wanted).norm() / wanted.norm() < noise


def test_the_layers_that_fit_are_replaced_and_named():
    layers = model()
    assert quantize_linears(layers, ActivationFormat.FP8) == ("0", "2")
    assert isinstance(layers[0], BlockScaledLinear)
    assert isinstance(layers[3], nn.Linear)


def test_layers_that_are_not_wanted_stay():
    layers = model()
    assert quantize_linears(layers, ActivationFormat.FP8, lambda name, _: name != "0") == ("2",)
    assert isinstance(layers[0], nn.Linear)


def test_a_residual_of_any_leading_shape_is_added():
    wrapper = nn.Sequential(model()[0])
    quantize_linears(wrapper, ActivationFormat.BF16)
    x, residual = torch.randn(2, 3, 256).bfloat16(), torch.randn(2, 3, 128).bfloat16()
    difference = wrapper[0](x, residual).float() - wrapper[0](x).float()
    assert torch.allclose(difference, residual.float(), atol=0.02)


def test_the_same_call_takes_a_plain_weight_and_a_block_scaled_one():
    x, weight, residual = (
        torch.randn(2, 3, 256).bfloat16(),
        model()[0].weight.detach(),
        torch.randn(2, 3, 128).bfloat16(),
    )
    plain, scaled = linear(x, weight, residual), linear(x, block_scaled(weight), residual)
    assert (plain.float() - scaled.float()).norm() / plain.float().norm() < BOTH_NOISE
