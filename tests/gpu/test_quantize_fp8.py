import pytest
import torch

from fish_engine import kernels
from fish_engine.kernels import reference

pytestmark = pytest.mark.gpu


def same_bits(found, wanted):
    return torch.equal(found.cpu().view(torch.uint8), wanted.cpu().view(torch.uint8))


@pytest.mark.parametrize("columns", [384, 1152, 2560, 9728])
@pytest.mark.parametrize("tokens", [1, 3, 8, 33, 130])
def test_every_byte_is_that_of_the_reference(device, tokens, columns):
    x = torch.randn(tokens, columns, dtype=torch.bfloat16) * torch.exp2(torch.randint(-8, 8, (tokens, 1)).float())
    x = x.bfloat16()
    x[0, :128] = 0
    x[-1, 128:256] = 1e-12
    values, scales = kernels.quantize_fp8(x.to(device))
    wanted_values, wanted_scales = reference.quantize_fp8(x)
    assert same_bits(values, wanted_values)
    assert torch.equal(scales.cpu(), wanted_scales)


def test_nan_stays_in_its_element_and_infinity_poisons_its_block(device):
    x = torch.ones(2, 256, dtype=torch.bfloat16)
    x[0, 3], x[1, 200] = float("nan"), float("inf")
    values, scales = kernels.quantize_fp8(x.to(device))
    wanted_values, wanted_scales = reference.quantize_fp8(x)
    number = ~wanted_values.float().isnan()  # a NaN has no sign to agree on
    assert torch.equal(values.float().isnan().cpu(), ~number)
    assert torch.equal(values.cpu().float()[number], wanted_values.float()[number])
    assert torch.equal(scales.cpu(), wanted_scales)
    assert values[0].float().isnan().sum() == 1
    assert scales[1, 1].isinf()


@pytest.mark.parametrize("columns", [128, 2560])
@pytest.mark.parametrize("tokens", [1, 5, 33])
def test_every_byte_of_mxfp8_is_that_of_the_reference(device, tokens, columns):
    x = torch.randn(tokens, columns) * torch.exp2(torch.randint(-40, 40, (tokens, 1)).float())
    x[0, :32] = 0
    values, scales = kernels.quantize_mxfp8(x.bfloat16().to(device))
    wanted_values, wanted_scales = reference.quantize_mxfp8(x.bfloat16())
    assert torch.equal(scales.cpu(), wanted_scales)
    assert same_bits(values, wanted_values)


def test_the_mxfp8_gemm_of_another_architecture_says_so(device):
    if torch.cuda.get_device_capability(device) == (12, 0):
        pytest.skip("this GPU runs it")
    x = kernels.quantize_mxfp8(torch.randn(1, 128, device=device, dtype=torch.bfloat16))
    weight = kernels.quantize_mxfp8(torch.randn(64, 128, device=device, dtype=torch.bfloat16))
    with pytest.raises(RuntimeError, match=r"compiled for compute capability 12\.0, cuda:0 has"):
        kernels.mxfp8_gemm(*x, *weight)
