"""Linear layers with block-scaled FP8 weights: as a function of plain tensors, as a module, and as a swap in a model."""

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fish_engine import kernels
from fish_engine.kernels.layout import MAX_COLUMNS, MAX_ROWS, ROW_MULTIPLE, SCALE_BLOCK, process_weights_after_loading
from fish_engine.kernels.reference import quantize_weight


class ActivationFormat(StrEnum):
    """What multiplies the FP8 weight. FP8 activations are faster; bf16 ones halve the noise of quantisation."""

    FP8 = "fp8"
    BF16 = "bf16"


class BlockScaledWeight(NamedTuple):
    """A weight [N, K] in e4m3 and a scale for each 128 × 128 block, as the kernels read them."""

    values: Tensor
    scales: Tensor  # [ceil(N / 128), K / 128] fp32


def block_scaled(weight: Tensor) -> BlockScaledWeight:
    """Quantise a weight [N, K]."""
    with torch.no_grad():
        return BlockScaledWeight(*process_weights_after_loading(*quantize_weight(weight)))


def linear(
    x: Tensor,
    weight: Tensor | BlockScaledWeight,
    residual: Tensor | None = None,
    activations: ActivationFormat = ActivationFormat.FP8,
) -> Tensor:
    """Return x @ weight^T (+ residual), for a plain weight as for a block-scaled one.

    Shapes: x [..., K] bf16, any leading dimensions are tokens; residual and the result [..., N].
    """
    if isinstance(weight, Tensor):
        y = F.linear(x, weight)
        return y if residual is None else y + residual
    rows = x.reshape(-1, x.shape[-1])
    added = None if residual is None else residual.reshape(rows.shape[0], -1)
    if activations is ActivationFormat.BF16:
        y = kernels.w8a16_gemm_blockscaled(rows, weight.values, weight.scales, added)
    else:
        y = kernels.fp8_gemm_blockscaled(*kernels.quantize_fp8(rows), weight.values, weight.scales, added)
    return y.view(*x.shape[:-1], -1)


class BlockScaledLinear(nn.Module):
    """A linear layer without bias whose weight is block-scaled; see `linear`."""

    weight: Tensor
    weight_scale: Tensor

    def __init__(self, weight: BlockScaledWeight, activations: ActivationFormat) -> None:
        super().__init__()
        self.register_buffer("weight", weight.values)
        self.register_buffer("weight_scale", weight.scales)
        self.activations = activations

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """Return x @ weight^T (+ residual)."""
        return linear(x, BlockScaledWeight(self.weight, self.weight_scale), residual, self.activations)


def fits_kernels(linear: nn.Linear) -> bool:
    """Return whether the kernels take a layer of this shape."""
    rows, columns = linear.weight.shape
    has_bias = "bias" in dict(linear.named_parameters(recurse=False))  # `linear.bias` is typed as if it were never None
    return (
        not has_bias
        and columns % SCALE_BLOCK == 0
        and rows % ROW_MULTIPLE == 0
        and columns <= MAX_COLUMNS
        and rows <= MAX_ROWS
    )


def quantize_linears(
    model: nn.Module,
    activations: ActivationFormat,
    wanted: Callable[[str, nn.Linear], bool] = lambda _name, _linear: True,
) -> tuple[str, ...]:
    """Replace the linear layers that fit and are wanted by block-scaled ones; return their names.

    The bf16 weights are freed one by one, so that the model never needs more memory than before.
    """
    replaced = []
    for name, module in list(model.named_modules()):
        if not isinstance(module, nn.Linear) or not fits_kernels(module) or not wanted(name, module):
            continue
        parent_name, _, child = name.rpartition(".")
        setattr(model.get_submodule(parent_name), child, BlockScaledLinear(block_scaled(module.weight), activations))
        replaced.append(name)
    return tuple(replaced)
