"""What each kernel computes, in plain PyTorch: the CPU implementation, and the truth that GPU tests compare with.

Shapes as in `layout.py`: x [M, K], weight [N, K], D = x @ weight^T.
"""

import torch
from torch import Tensor

from fish_engine.kernels.layout import (
    MX_BLOCK,
    SCALE_BLOCK,
    pack_mx_scales,
    padded_tokens,
    separate_gate_up,
    unpack_mx_scales,
)

LARGEST_E4M3 = 448.0
SMALLEST_AMAX = 1e-10
"""Keeps the scale of an all-zero block finite."""
MX_LARGEST_EXPONENT = 8  # 448 = 1.75 · 2^8
UE8M0_BIAS = 127


def _blocks(x: Tensor, block: int) -> Tensor:
    """Return [M, K/block, block]."""
    return x.reshape(x.shape[0], -1, block)


def _block_amax(x: Tensor, block: int) -> Tensor:
    """Return the largest magnitudes [M, K/block], passing over NaN: it marks its own element, not its block."""
    blocks = _blocks(x.float(), block)
    return torch.where(blocks.isnan(), 0.0, blocks.abs()).amax(-1)


def _to_e4m3(x: Tensor) -> Tensor:
    """Round to nearest even, saturating. PyTorch's own cast turns what is past 448 into NaN."""
    return x.clamp(-LARGEST_E4M3, LARGEST_E4M3).to(torch.float8_e4m3fn)


def quantize_fp8(x: Tensor) -> tuple[Tensor, Tensor]:
    """Quantise each 128 columns of a row: values = e4m3(x · inverse), inverse = 448 / amax, scale = 1 / inverse.

    An infinity makes its block's scale infinite, so that whatever is multiplied with it shows; NaN stays in its element.
    """
    # Tensor by tensor: `448 / tensor` would multiply by a rounded reciprocal, one ulp off for some amax.
    amax = _block_amax(x, SCALE_BLOCK).clamp_min(SMALLEST_AMAX)
    inverse = torch.div(torch.full_like(amax, LARGEST_E4M3), amax)  # [M, K/128]
    scale = torch.div(torch.ones_like(inverse), inverse)
    values = _to_e4m3(_blocks(x.float(), SCALE_BLOCK) * inverse[..., None]).flatten(-2)
    packed = torch.zeros(scale.shape[1], padded_tokens(scale.shape[0]), dtype=torch.float32, device=x.device)
    packed[:, : scale.shape[0]] = scale.t()
    return values, packed


def dequantize_activations(values: Tensor, scales: Tensor) -> Tensor:
    """Return fp32 [M, K]."""
    blocks = _blocks(values.float(), SCALE_BLOCK)  # [M, K/128, 128]
    return (blocks * scales[:, : values.shape[0]].t()[..., None]).flatten(-2)


def quantize_weight(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Quantise a weight in blocks of 128 × 128; the last block of rows may be short."""
    rows, columns = weight.shape
    padded = torch.nn.functional.pad(weight.float(), (0, 0, 0, -rows % SCALE_BLOCK))
    blocks = padded.view(-1, SCALE_BLOCK, columns // SCALE_BLOCK, SCALE_BLOCK)
    amax = blocks.abs().amax((1, 3)).clamp_min(SMALLEST_AMAX)  # [N/128, K/128]
    scale = torch.div(amax, torch.full_like(amax, LARGEST_E4M3))
    values = _to_e4m3(blocks / scale[:, None, :, None]).view(-1, columns)[:rows]
    return values.contiguous(), scale


def dequantize_weight(weight: Tensor, weight_scale: Tensor) -> Tensor:
    """Return fp32 [N, K]."""
    scale = weight_scale.repeat_interleave(SCALE_BLOCK, 0)[: weight.shape[0]]  # [N, K/128]
    return (_blocks(weight.float(), SCALE_BLOCK) * scale[..., None]).flatten(-2)


def _product(x: Tensor, weight: Tensor, residual: Tensor | None) -> Tensor:
    product = x @ weight.t()
    return (product if residual is None else product + residual.float()).bfloat16()


def fp8_gemm_blockscaled(
    x: Tensor, x_scale: Tensor, weight: Tensor, weight_scale: Tensor, residual: Tensor | None = None
) -> Tensor:
    """Multiply quantised activations by a quantised weight; the residual is added before rounding to bf16."""
    return _product(dequantize_activations(x, x_scale), dequantize_weight(weight, weight_scale), residual)


def w8a16_gemm_blockscaled(x: Tensor, weight: Tensor, weight_scale: Tensor, residual: Tensor | None = None) -> Tensor:
    """Multiply bf16 activations by a quantised weight."""
    return _product(x.float(), dequantize_weight(weight, weight_scale), residual)


def silu_mul(gate_up: Tensor) -> Tensor:
    """Return silu(gate) · up in fp32, gate in the first half of the columns."""
    gate, up = gate_up.float().chunk(2, -1)
    return torch.nn.functional.silu(gate) * up


def silu_mul_quantize(gate_up: Tensor) -> tuple[Tensor, Tensor]:
    """Quantise silu(gate) · up without rounding it to bf16 in between."""
    return quantize_fp8(silu_mul(gate_up))


def gate_up_swiglu(x: Tensor, x_scale: Tensor, weight: Tensor, weight_scale: Tensor) -> Tensor:
    """Return silu(gate) · up in fp32 for a weight whose rows are interleaved in eights; its scales are not."""
    dequantized = dequantize_weight(separate_gate_up(weight), weight_scale)
    return silu_mul(dequantize_activations(x, x_scale) @ dequantized.t())


def gate_up_swiglu_quantize(x: Tensor, x_scale: Tensor, weight: Tensor, weight_scale: Tensor) -> tuple[Tensor, Tensor]:
    """Multiply, apply SwiGLU, quantise: nothing is rounded in between."""
    return quantize_fp8(gate_up_swiglu(x, x_scale, weight, weight_scale))


def rms_norm(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """Return the normed rows in bf16, rounded before and after the weight as in training."""
    wide = x.float()
    normed = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + epsilon)
    return normed.bfloat16() * weight


def rms_norm_quantize(
    x: Tensor, residual: Tensor | None, weight: Tensor, epsilon: float
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return values, scales and the new residual: residual + x where there is one, which is then what is normed."""
    summed = x if residual is None else (x.float() + residual.float()).bfloat16()
    values, scales = quantize_fp8(rms_norm(summed, weight, epsilon))
    return values, scales, None if residual is None else summed


def quantize_mxfp8(x: Tensor) -> tuple[Tensor, Tensor]:
    """Quantise each 32 columns of a row with a power-of-two scale, the smallest that does not saturate the largest value.

    values = e4m3(x / 2^e); a block of zeros has the smallest scale, 2^-127.
    """
    amax = _block_amax(x, MX_BLOCK)  # [M, K/32]
    # amax = mantissa · 2^exponent with mantissa in [0.5, 1): 448 · 2^e >= amax needs one more when mantissa > 0.875.
    mantissa, exponent = torch.frexp(amax)
    needed = exponent - 1 - MX_LARGEST_EXPONENT + (mantissa > LARGEST_E4M3 / 512).int()
    needed = torch.where(amax == 0, -UE8M0_BIAS, torch.where(amax.isinf(), UE8M0_BIAS, needed))
    needed = needed.clamp(-UE8M0_BIAS, UE8M0_BIAS)
    scaled = _blocks(x.double(), MX_BLOCK) * torch.exp2(-needed.double())[..., None]
    return _to_e4m3(scaled.float()).flatten(-2), pack_mx_scales((needed + UE8M0_BIAS).to(torch.uint8))


def dequantize_mxfp8(values: Tensor, scales: Tensor) -> Tensor:
    """Return fp32 [M, K]."""
    exponents = unpack_mx_scales(scales, values.shape[0]).double() - UE8M0_BIAS  # [M, K/32]
    return (_blocks(values.double(), MX_BLOCK) * torch.exp2(exponents)[..., None]).flatten(-2).float()


def mxfp8_gemm(x: Tensor, x_scale: Tensor, weight: Tensor, weight_scale: Tensor) -> Tensor:
    """Multiply MXFP8 activations by an MXFP8 weight, in bf16."""
    return _product(dequantize_mxfp8(x, x_scale), dequantize_mxfp8(weight, weight_scale), None)
