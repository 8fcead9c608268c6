"""The ops: schemas, fakes, CPU implementations. The one place where a schema is written.

PyTorch's dispatcher chooses: CPU tensors go to `reference.py`, CUDA tensors to the compiled library, which registers itself for
the same names when it is loaded. Without it a CUDA call fails with PyTorch's own error; nothing falls back.
Every op writes into tensors that the caller allocated, so that a CUDA graph replays without allocating.
"""

# ruff: noqa: PLR0917  the functions take what their schemas say, in that order

from collections.abc import Callable
from typing import Final

import torch
from torch import Tensor

from fish_engine.kernels import reference
from fish_engine.kernels.checks import TensorSpec, check_matrix, check_size, check_tensor
from fish_engine.kernels.layout import (
    MAX_COLUMNS,
    MAX_QUANTIZED_COLUMNS,
    MAX_ROWS,
    MAX_TOKENS,
    ROW_MULTIPLE,
    SCALE_BLOCK,
    activation_scales_spec,
    padded_tokens,
    scale_blocks,
)

NAMESPACE: Final = "fish"
SCHEMAS: Final = {
    "quantize_fp8": "(Tensor x, Tensor(a!) values, Tensor(b!) scales) -> ()",
    "silu_mul_quantize": "(Tensor gate_up, Tensor(a!) values, Tensor(b!) scales) -> ()",
    "rms_norm_quantize": (
        "(Tensor x, Tensor(c!)? residual, Tensor weight, float epsilon, Tensor(a!) values, Tensor(b!) scales) -> ()"
    ),
    "fp8_gemm_blockscaled": (
        "(Tensor x, Tensor x_scale, Tensor weight, Tensor weight_scale, Tensor? residual, Tensor(a!) out) -> ()"
    ),
    "w8a16_gemm_blockscaled": "(Tensor x, Tensor weight, Tensor weight_scale, Tensor? residual, Tensor(a!) out) -> ()",
    "gate_up_swiglu_quantize": (
        "(Tensor x, Tensor x_scale, Tensor weight, Tensor weight_scale, Tensor(a!) values, Tensor(b!) scales) -> ()"
    ),
    "quantize_mxfp8": "(Tensor x, Tensor(a!) values, Tensor(b!) scales) -> ()",
    "mxfp8_gemm": "(Tensor x, Tensor x_scale, Tensor weight, Tensor weight_scale, Tensor(a!) out) -> ()",
}

_FP8 = torch.float8_e4m3fn
_BF16 = torch.bfloat16


def _check_quantized(x: Tensor, tokens: int, columns: int, values: Tensor, scales: Tensor) -> None:
    check_size("tokens", tokens, multiple_of=1, at_most=MAX_TOKENS)
    check_size("K (columns to quantise)", columns, multiple_of=SCALE_BLOCK, at_most=MAX_QUANTIZED_COLUMNS)
    check_tensor(values, TensorSpec(name="values", dtype=_FP8, shape=(tokens, columns)), x.device)
    check_tensor(scales, activation_scales_spec("scales", tokens, columns), x.device)


def _check_input(name: str, x: Tensor) -> tuple[int, int]:
    tokens, columns = check_matrix(name, x)
    check_tensor(x, TensorSpec(name=name, dtype=_BF16, shape=(tokens, columns)), x.device)
    return tokens, columns


def _check_gemm(x: Tensor, x_dtype: torch.dtype, weight: Tensor, weight_scale: Tensor) -> tuple[int, int, int]:
    tokens, columns = check_matrix("x", x)
    rows, _ = check_matrix("weight", weight)
    check_size("tokens (rows of x)", tokens, multiple_of=1, at_most=MAX_TOKENS)
    check_size("K (columns of x)", columns, multiple_of=SCALE_BLOCK, at_most=MAX_COLUMNS)
    check_size("N (rows of weight)", rows, multiple_of=ROW_MULTIPLE, at_most=MAX_ROWS)
    check_tensor(x, TensorSpec(name="x", dtype=x_dtype, shape=(tokens, columns)), x.device)
    check_tensor(weight, TensorSpec(name="weight", dtype=_FP8, shape=(rows, columns)), x.device)
    scale_shape = (scale_blocks(rows), columns // SCALE_BLOCK)
    check_tensor(weight_scale, TensorSpec(name="weight_scale", dtype=torch.float32, shape=scale_shape), x.device)
    return tokens, columns, rows


def _check_output(x: Tensor, shape: tuple[int, int], residual: Tensor | None, out: Tensor) -> None:
    check_tensor(out, TensorSpec(name="out", dtype=_BF16, shape=shape), x.device)
    if residual is not None:
        check_tensor(residual, TensorSpec(name="residual", dtype=_BF16, shape=shape), x.device)


def _quantize_fp8(x: Tensor, values: Tensor, scales: Tensor) -> None:
    tokens, columns = _check_input("x", x)
    _check_quantized(x, tokens, columns, values, scales)
    _copy((values, scales), reference.quantize_fp8(x))


def _silu_mul_quantize(gate_up: Tensor, values: Tensor, scales: Tensor) -> None:
    tokens, columns = _check_input("gate_up", gate_up)
    check_size("columns of gate_up", columns, multiple_of=2 * SCALE_BLOCK, at_most=2 * MAX_QUANTIZED_COLUMNS)
    _check_quantized(gate_up, tokens, columns // 2, values, scales)
    _copy((values, scales), reference.silu_mul_quantize(gate_up))


def _rms_norm_quantize(
    x: Tensor, residual: Tensor | None, weight: Tensor, epsilon: float, values: Tensor, scales: Tensor
) -> None:
    tokens, columns = _check_input("x", x)
    check_tensor(weight, TensorSpec(name="weight", dtype=_BF16, shape=(columns,)), x.device)
    if residual is not None:
        check_tensor(residual, TensorSpec(name="residual", dtype=_BF16, shape=(tokens, columns)), x.device)
    _check_quantized(x, tokens, columns, values, scales)
    new_values, new_scales, summed = reference.rms_norm_quantize(x, residual, weight, epsilon)
    _copy((values, scales), (new_values, new_scales))
    if residual is not None and summed is not None:
        residual.copy_(summed)


def _fp8_gemm_blockscaled(
    x: Tensor, x_scale: Tensor, weight: Tensor, weight_scale: Tensor, residual: Tensor | None, out: Tensor
) -> None:
    tokens, columns, rows = _check_gemm(x, _FP8, weight, weight_scale)
    check_tensor(x_scale, activation_scales_spec("x_scale", tokens, columns), x.device)
    _check_output(x, (tokens, rows), residual, out)
    out.copy_(reference.fp8_gemm_blockscaled(x, x_scale, weight, weight_scale, residual))


def _w8a16_gemm_blockscaled(
    x: Tensor, weight: Tensor, weight_scale: Tensor, residual: Tensor | None, out: Tensor
) -> None:
    tokens, _, rows = _check_gemm(x, _BF16, weight, weight_scale)
    _check_output(x, (tokens, rows), residual, out)
    out.copy_(reference.w8a16_gemm_blockscaled(x, weight, weight_scale, residual))


def _gate_up_swiglu_quantize(
    x: Tensor, x_scale: Tensor, weight: Tensor, weight_scale: Tensor, values: Tensor, scales: Tensor
) -> None:
    tokens, columns, rows = _check_gemm(x, _FP8, weight, weight_scale)
    check_size("N (rows of weight: gate and up)", rows, multiple_of=2 * SCALE_BLOCK, at_most=MAX_ROWS)
    check_tensor(x_scale, activation_scales_spec("x_scale", tokens, columns), x.device)
    check_tensor(values, TensorSpec(name="values", dtype=_FP8, shape=(tokens, rows // 2)), x.device)
    check_tensor(scales, activation_scales_spec("scales", tokens, rows // 2), x.device)
    _copy((values, scales), reference.gate_up_swiglu_quantize(x, x_scale, weight, weight_scale))


def _mx_scales_spec(name: str, rows: int, columns: int) -> TensorSpec:
    return TensorSpec(name=name, dtype=torch.int32, shape=(columns // SCALE_BLOCK, padded_tokens(rows)))


def _quantize_mxfp8(x: Tensor, values: Tensor, scales: Tensor) -> None:
    tokens, columns = _check_input("x", x)
    check_size("K (columns to quantise)", columns, multiple_of=SCALE_BLOCK, at_most=MAX_COLUMNS)
    check_tensor(values, TensorSpec(name="values", dtype=_FP8, shape=(tokens, columns)), x.device)
    check_tensor(scales, _mx_scales_spec("scales", tokens, columns), x.device)
    _copy((values, scales), reference.quantize_mxfp8(x))


def _mxfp8_gemm(x: Tensor, x_scale: Tensor, weight: Tensor, weight_scale: Tensor, out: Tensor) -> None:
    tokens, columns = check_matrix("x", x)
    rows, _ = check_matrix("weight", weight)
    check_size("tokens (rows of x)", tokens, multiple_of=1, at_most=MAX_TOKENS)
    check_size("K (columns of x)", columns, multiple_of=SCALE_BLOCK, at_most=MAX_COLUMNS)
    check_size("N (rows of weight)", rows, multiple_of=ROW_MULTIPLE, at_most=MAX_ROWS)
    check_tensor(x, TensorSpec(name="x", dtype=_FP8, shape=(tokens, columns)), x.device)
    check_tensor(weight, TensorSpec(name="weight", dtype=_FP8, shape=(rows, columns)), x.device)
    check_tensor(x_scale, _mx_scales_spec("x_scale", tokens, columns), x.device)
    check_tensor(weight_scale, _mx_scales_spec("weight_scale", rows, columns), x.device)
    check_tensor(out, TensorSpec(name="out", dtype=_BF16, shape=(tokens, rows)), x.device)
    out.copy_(reference.mxfp8_gemm(x, x_scale, weight, weight_scale))


def _copy(targets: tuple[Tensor, ...], sources: tuple[Tensor, ...]) -> None:
    for target, source in zip(targets, sources, strict=True):
        target.copy_(source)


def _fake(*_operands: object) -> None:
    """Describe an op that returns nothing: its outputs are the caller's tensors."""


_CPU: Final[dict[str, Callable[..., None]]] = {
    "quantize_fp8": _quantize_fp8,
    "silu_mul_quantize": _silu_mul_quantize,
    "rms_norm_quantize": _rms_norm_quantize,
    "fp8_gemm_blockscaled": _fp8_gemm_blockscaled,
    "w8a16_gemm_blockscaled": _w8a16_gemm_blockscaled,
    "gate_up_swiglu_quantize": _gate_up_swiglu_quantize,
    "quantize_mxfp8": _quantize_mxfp8,
    "mxfp8_gemm": _mxfp8_gemm,
}


def _register() -> torch.library.Library:
    library = torch.library.Library(NAMESPACE, "DEF")  # type: ignore[no-untyped-call]
    for name, schema in SCHEMAS.items():
        library.define(name + schema, tags=(torch.Tag.pt2_compliant_tag,))  # type: ignore[no-untyped-call]
        library.impl(name, _CPU[name], "CPU")  # type: ignore[no-untyped-call]
        torch.library.register_fake(f"{NAMESPACE}::{name}", _fake, lib=library)
    return library


LIBRARY: Final = _register()
"""Keeps the registrations alive for as long as the process."""
