"""What a kernel cannot take is named, with the value and what would be right."""

import pytest
import torch

from fish_engine.kernels import reference
from fish_engine.kernels.errors import OperandError


def operands():
    x, x_scale = reference.quantize_fp8(torch.randn(5, 256).bfloat16())
    weight, weight_scale = reference.quantize_weight(torch.randn(256, 256))
    out = torch.empty(5, 256, dtype=torch.bfloat16)
    return {"x": x, "x_scale": x_scale, "weight": weight, "weight_scale": weight_scale, "residual": None, "out": out}


WRONG = {
    "dtype": ("x", lambda t: t.float(), "x: expected torch.float8_e4m3fn, found torch.float32"),
    "out dtype": ("out", lambda t: t.half(), "out: expected torch.bfloat16, found torch.float16"),
    "x_scale by token": (
        "x_scale",
        lambda t: t.t().contiguous(),
        r"x_scale: expected shape \[2, 8\].*found shape \[8, 2\]",
    ),
    "x_scale unpadded": ("x_scale", lambda t: t[:, :5].contiguous(), r"expected shape \[2, 8\].*found shape \[2, 5\]"),
    "weight_scale strides": (
        "weight_scale",
        lambda t: t.t(),
        r"weight_scale: expected .*strides \[2, 1\].*strides \[1, 2\]",
    ),
    "x strides": ("x", lambda t: t.t().contiguous().t(), r"x: expected .*strides \[256, 1\].*strides \[1, 5\]"),
    "K": ("x", lambda t: t[:, :192].contiguous(), "K .columns of x.*multiple of 128.*found 192"),
    "K of the weight": ("weight", lambda t: t[:, :128].contiguous(), r"weight: expected shape \[256, 256\]"),
    "N": ("weight", lambda t: t[:100].contiguous(), "N .rows of weight.*multiple of 64.*found 100"),
    "tokens": ("x", lambda t: t[:1].repeat(8193, 1), "tokens .rows of x.*to 8192, found 8193"),
    "residual shape": ("residual", lambda _: torch.zeros(4, 256).bfloat16(), r"residual: expected shape \[5, 256\]"),
    "dimensions": ("x", lambda t: t[0], "x: expected 2 dimensions, found 1"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_operand_of_a_gemm_is_named_and_nothing_is_written(case):
    name, change, message = WRONG[case]
    arguments = operands()
    arguments["out"].fill_(7)
    changed = arguments | {name: change(arguments[name])}
    with pytest.raises(OperandError, match=message):
        torch.ops.fish.fp8_gemm_blockscaled(*changed.values())
    assert (arguments["out"] == 7).all()


QUANTISERS = {
    "quantize_fp8": torch.ops.fish.quantize_fp8,
    "silu_mul_quantize": lambda x, values, scales: torch.ops.fish.silu_mul_quantize(
        torch.cat([x, x], 1), values, scales
    ),
    "rms_norm_quantize": lambda x, values, scales: torch.ops.fish.rms_norm_quantize(
        x, None, torch.ones(x.shape[1]).bfloat16(), 1e-6, values, scales
    ),
}


@pytest.mark.parametrize("op", QUANTISERS)
def test_a_wrong_output_of_a_quantiser_is_named(op):
    x = torch.randn(3, 256).bfloat16()
    values, scales = torch.empty(3, 256).to(torch.float8_e4m3fn), torch.empty(2, 4)
    QUANTISERS[op](x, values, scales)
    with pytest.raises(OperandError, match=r"scales: expected shape \[2, 4\].*found shape \[3, 2\]"):
        QUANTISERS[op](x, values, torch.empty(3, 2))
    with pytest.raises(OperandError, match=r"values: expected torch.float8_e4m3fn, found torch.uint8"):
        QUANTISERS[op](x, values.view(torch.uint8), scales)


def test_an_odd_half_of_gate_up_is_named():
    with pytest.raises(OperandError, match=r"columns of gate_up: expected a multiple of 256.*found 384"):
        torch.ops.fish.silu_mul_quantize(torch.zeros(1, 384).bfloat16(), torch.empty(1, 192), torch.empty(1, 4))
