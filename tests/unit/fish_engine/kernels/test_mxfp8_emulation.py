"""The MXFP8 GEMM of sm_120a on a CPU: the kernel's own index functions around a model of the hardware's instruction."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from fish_engine import kernels
from fish_engine.kernels import layout, reference

CSRC = Path(__file__).parents[4] / "csrc"
FP32_SUMS = 1e-5


@pytest.fixture(scope="module")
def emulate(tmp_path_factory):
    compiler = shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    library = tmp_path_factory.mktemp("emulation") / "emulate.so"
    source = CSRC / "sm120" / "mxfp8_gemm" / "emulate.cpp"
    subprocess.run([compiler, "-O2", "-std=c++20", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    gemm = ctypes.CDLL(str(library)).fish_emulate_mxfp8_gemm

    def run(x, x_scale, weight, weight_scale):
        out = torch.full((x.shape[0], weight.shape[0]), float("nan"))
        pointers = [ctypes.c_void_p(t.data_ptr()) for t in (x, x_scale, weight, weight_scale, out)]
        gemm(*pointers, x.shape[0], weight.shape[0], x.shape[1])
        return out

    return run


def gaussian(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))).bfloat16()


def exact(x, x_scale, weight, weight_scale):
    return (
        reference.dequantize_mxfp8(x, x_scale).double() @ reference.dequantize_mxfp8(weight, weight_scale).double().t()
    )


def worst_element(found, wanted):
    error = (found.double() - wanted).abs() / wanted.abs().max()
    return error.max().item(), divmod(error.argmax().item(), wanted.shape[1])


@pytest.mark.parametrize("tokens", [1, 7, 8, 17])
@pytest.mark.parametrize(("rows", "columns"), [(64, 128), (128, 384), (192, 256)])
def test_the_emulation_multiplies_what_the_operands_dequantise_to(emulate, tokens, rows, columns):
    operands = (*kernels.quantize_mxfp8(gaussian(tokens, columns)), *kernels.quantize_mxfp8(gaussian(rows, columns)))
    error, where = worst_element(emulate(*operands), exact(*operands))
    assert error < FP32_SUMS, f"token and row {where}"


def test_every_scale_reaches_its_own_block(emulate):
    generator = torch.Generator().manual_seed(3)
    x, _ = kernels.quantize_mxfp8(gaussian(9, 256))
    weight, _ = kernels.quantize_mxfp8(gaussian(128, 256))
    x_scale = layout.pack_mx_scales(torch.randint(107, 148, (9, 8), generator=generator, dtype=torch.uint8))
    weight_scale = layout.pack_mx_scales(torch.randint(107, 148, (128, 8), generator=generator, dtype=torch.uint8))
    error, where = worst_element(emulate(x, x_scale, weight, weight_scale), exact(x, x_scale, weight, weight_scale))
    assert error < FP32_SUMS, f"token and row {where}"
    swapped = x_scale[:, [1, 0, *range(2, x_scale.shape[1])]].contiguous()
    error, _ = worst_element(emulate(x, swapped, weight, weight_scale), exact(x, x_scale, weight, weight_scale))
    assert error > 1e-2, "scales of two tokens were swapped, and nothing changed"


def test_each_weight_and_token_byte_is_multiplied_once_with_its_partner(emulate):
    # One row and one column of ones at a time would take long; distinct powers of two per column do it at once.
    x = torch.zeros(8, 128)
    weight = torch.zeros(64, 128)
    for token in range(8):
        x[token, token * 16 : token * 16 + 16] = 1.0
    for row in range(64):
        weight[row, row * 2 : row * 2 + 2] = 2.0
    operands = (*kernels.quantize_mxfp8(x.bfloat16()), *kernels.quantize_mxfp8(weight.bfloat16()))
    assert torch.equal(emulate(*operands), (x @ weight.t()))
