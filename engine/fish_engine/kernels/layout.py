"""How values and scales lie in memory. The kernels, their references and the loader of weights all read it from here.

    activations      values [M, K] e4m3          scales [K/128, M rounded up to 4] fp32, padding zero
    weights          values [N, K] e4m3          scales [ceil(N/128), K/128] fp32, as in checkpoints
    gate-up weights  rows interleaved in eights: 8 gate rows, the 8 up rows of the same columns, …
    MXFP8            values [M, K] e4m3          scales [K/128, M rounded up to 4] int32: four UE8M0 bytes, K ascending

The scales of activations are K-major because a CTA reads all tokens of a range of K: one contiguous copy.
"""

import torch
from torch import Tensor

from fish_engine.kernels.checks import TensorSpec, check_matrix, check_size, check_tensor, contiguous_strides
from fish_engine.kernels.errors import OperandError

SCALE_BLOCK = 128
"""Columns of K that share an activation scale; rows and columns that share a weight scale."""
MX_BLOCK = 32
"""Columns of K that share a scale in MXFP8."""
ROW_MULTIPLE = 64
"""Weight rows of one tensor-core operand."""
MAX_TOKENS = 8192
MAX_COLUMNS = 1 << 15
MAX_QUANTIZED_COLUMNS = 1 << 14
MAX_ROWS = 1 << 20
INTERLEAVED_ROWS = 8
"""A thread holds weight rows r and r + 8 of a tile; interleaved, they are the gate and the up of one column."""


def padded_tokens(tokens: int) -> int:
    """Return the pitch of activation scales: the copy engine moves multiples of 16 bytes."""
    return (tokens + 3) // 4 * 4


def scale_blocks(size: int) -> int:
    """Return how many blocks of 128 cover a size."""
    return (size + SCALE_BLOCK - 1) // SCALE_BLOCK


def activation_scales_spec(name: str, tokens: int, columns: int) -> TensorSpec:
    """Return what the scales of [tokens, columns] activations look like."""
    return TensorSpec(name=name, dtype=torch.float32, shape=(columns // SCALE_BLOCK, padded_tokens(tokens)))


def process_weights_after_loading(weight: Tensor, weight_scale: Tensor) -> tuple[Tensor, Tensor]:
    """Check a block-scaled weight of a checkpoint and return it as the GEMMs read it.

    Shapes: weight [N, K] e4m3, weight_scale [ceil(N/128), K/128] fp32, both row-major. A transposed or re-strided scale has
    the right numbers in the wrong places, and multiplies into plausible nonsense: it raises OperandError instead.
    """
    rows, columns = check_matrix("weight", weight)
    check_size("N (rows of weight)", rows, multiple_of=ROW_MULTIPLE, at_most=MAX_ROWS)
    check_size("K (columns of weight)", columns, multiple_of=SCALE_BLOCK, at_most=MAX_COLUMNS)
    check_tensor(weight, TensorSpec(name="weight", dtype=torch.float8_e4m3fn, shape=(rows, columns)), weight.device)
    scale_shape = (scale_blocks(rows), columns // SCALE_BLOCK)
    check_tensor(weight_scale, TensorSpec(name="weight_scale", dtype=torch.float32, shape=scale_shape), weight.device)
    # A size of 1 makes any stride contiguous for PyTorch; the loader still wants the one that a checkpoint has.
    if weight_scale.stride() != contiguous_strides(scale_shape):
        raise OperandError(
            f"weight_scale: expected strides {list(contiguous_strides(scale_shape))}, found {list(weight_scale.stride())}"
        )
    if not bool(torch.isfinite(weight_scale).all()) or bool((weight_scale <= 0).any()):
        raise OperandError("weight_scale: expected finite scales above 0")
    return weight, weight_scale


def interleave_gate_up(weight: Tensor) -> Tensor:
    """Return gate-up rows interleaved in eights, from [gate; up] stacked as checkpoints have them."""
    rows, columns = check_matrix("gate_up weight", weight)
    check_size("N (gate and up rows)", rows, multiple_of=2 * SCALE_BLOCK, at_most=MAX_ROWS)
    halves = weight.view(torch.uint8).reshape(2, rows // 2 // INTERLEAVED_ROWS, INTERLEAVED_ROWS, columns)
    return halves.transpose(0, 1).reshape(rows, columns).contiguous().view(weight.dtype)


def separate_gate_up(weight: Tensor) -> Tensor:
    """Undo `interleave_gate_up`."""
    rows, columns = check_matrix("gate_up weight", weight)
    pairs = weight.view(torch.uint8).reshape(rows // 2 // INTERLEAVED_ROWS, 2, INTERLEAVED_ROWS, columns)
    return pairs.transpose(0, 1).reshape(rows, columns).contiguous().view(weight.dtype)


def pack_mx_scales(exponents: Tensor) -> Tensor:
    """Return UE8M0 bytes [M, K/32] as the MXFP8 GEMM reads them: int32 [K/128, M rounded up to 4], padding zero."""
    rows, blocks = check_matrix("exponents", exponents)
    check_size("K/32", blocks, multiple_of=SCALE_BLOCK // MX_BLOCK, at_most=MAX_COLUMNS // MX_BLOCK)
    words = exponents.to(torch.uint8).contiguous().view(torch.int32)  # [M, K/128], first block in the low byte
    packed = torch.zeros(words.shape[1], padded_tokens(rows), dtype=torch.int32, device=exponents.device)
    packed[:, :rows] = words.t()
    return packed


def unpack_mx_scales(packed: Tensor, rows: int) -> Tensor:
    """Undo `pack_mx_scales`: uint8 [rows, K/32]."""
    words = torch.empty(rows, packed.shape[0], dtype=torch.int32, device=packed.device)
    return words.copy_(packed[:, :rows].t()).view(torch.uint8)
