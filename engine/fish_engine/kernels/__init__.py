"""Block-scaled FP8 kernels: the functions that the model calls. Which implementation runs is the dispatcher's business.

`select.py` says whether the compiled library is loaded, `layout.py` how tensors lie in memory, `linear.py` holds the layers.
"""

import torch
from torch import Tensor

from fish_engine.kernels import ops
from fish_engine.kernels.layout import (
    SCALE_BLOCK,
    interleave_gate_up,
    padded_tokens,
    process_weights_after_loading,
)

__all__ = [
    "fp8_gemm_blockscaled",
    "gate_up_swiglu_quantize",
    "interleave_gate_up",
    "mxfp8_gemm",
    "process_weights_after_loading",
    "quantize_fp8",
    "quantize_mxfp8",
    "rms_norm_quantize",
    "silu_mul_quantize",
    "w8a16_gemm_blockscaled",
]

_OPS = torch.ops.fish
assert ops.LIBRARY is not None  # importing it registers the ops


def _empty_quantized(like: Tensor, columns: int, scale_dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    tokens = like.shape[0]
    values = torch.empty(tokens, columns, dtype=torch.float8_e4m3fn, device=like.device)
    scales = torch.empty(columns // SCALE_BLOCK, padded_tokens(tokens), dtype=scale_dtype, device=like.device)
    return values, scales


def _empty_product(x: Tensor, weight: Tensor) -> Tensor:
    return torch.empty(x.shape[0], weight.shape[0], dtype=torch.bfloat16, device=x.device)


def quantize_fp8(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return e4m3 values [M, K] and the scales of each 128 columns, as the GEMM reads them."""
    values, scales = _empty_quantized(x, x.shape[-1])
    _OPS.quantize_fp8(x, values, scales)
    return values, scales


def silu_mul_quantize(gate_up: Tensor) -> tuple[Tensor, Tensor]:
    """Return silu(gate) · up quantised; gate_up [M, 2K] holds the gate in its first half."""
    values, scales = _empty_quantized(gate_up, gate_up.shape[-1] // 2)
    _OPS.silu_mul_quantize(gate_up, values, scales)
    return values, scales


def rms_norm_quantize(
    x: Tensor, weight: Tensor, epsilon: float, residual: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the RMS norm of x, or of residual + x, quantised. The residual is replaced by the sum."""
    values, scales = _empty_quantized(x, x.shape[-1])
    _OPS.rms_norm_quantize(x, residual, weight, epsilon, values, scales)
    return values, scales


def fp8_gemm_blockscaled(
    x: Tensor, x_scale: Tensor, weight: Tensor, weight_scale: Tensor, residual: Tensor | None = None
) -> Tensor:
    """Return x @ weight^T (+ residual) in bf16. A row's bits do not depend on the other rows."""
    out = _empty_product(x, weight)
    _OPS.fp8_gemm_blockscaled(x, x_scale, weight, weight_scale, residual, out)
    return out


def w8a16_gemm_blockscaled(x: Tensor, weight: Tensor, weight_scale: Tensor, residual: Tensor | None = None) -> Tensor:
    """Return x @ weight^T (+ residual) for bf16 activations."""
    out = _empty_product(x, weight)
    _OPS.w8a16_gemm_blockscaled(x, weight, weight_scale, residual, out)
    return out


def gate_up_swiglu_quantize(x: Tensor, x_scale: Tensor, weight: Tensor, weight_scale: Tensor) -> tuple[Tensor, Tensor]:
    """Return silu(gate) · up quantised; the weight's rows are interleaved by `interleave_gate_up`, its scales are not."""
    values, scales = _empty_quantized(x, weight.shape[0] // 2)
    _OPS.gate_up_swiglu_quantize(x, x_scale, weight, weight_scale, values, scales)
    return values, scales


def quantize_mxfp8(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return e4m3 values [M, K] and the power-of-two scales of each 32 columns, four to a word."""
    values, scales = _empty_quantized(x, x.shape[-1], torch.int32)
    _OPS.quantize_mxfp8(x, values, scales)
    return values, scales


def mxfp8_gemm(x: Tensor, x_scale: Tensor, weight: Tensor, weight_scale: Tensor) -> Tensor:
    """Return x @ weight^T in bf16 for MXFP8 operands."""
    out = _empty_product(x, weight)
    _OPS.mxfp8_gemm(x, x_scale, weight, weight_scale, out)
    return out
