"""A linear layer with a block-scaled FP8 weight, and the swap that puts it into a model."""

from collections.abc import Callable
from enum import StrEnum

import torch
from torch import Tensor, nn

from fish_engine import kernels
from fish_engine.kernels.layout import MAX_COLUMNS, MAX_ROWS, ROW_MULTIPLE, SCALE_BLOCK, process_weights_after_loading
from fish_engine.kernels.reference import quantize_weight


class ActivationFormat(StrEnum):
    """What multiplies the FP8 weight. FP8 activations are faster; bf16 ones halve the noise of quantisation."""

    FP8 = "fp8"
    BF16 = "bf16"


class BlockScaledLinear(nn.Module):
    """y = x @ weight^T, the weight in e4m3 with a scale for each 128 × 128 block.

    Shapes: x [..., K] bf16, y [..., N] bf16. `residual`, if given, is added before y is rounded.
    """

    weight: Tensor
    weight_scale: Tensor

    def __init__(self, weight: Tensor, weight_scale: Tensor, activations: ActivationFormat) -> None:
        super().__init__()
        weight, weight_scale = process_weights_after_loading(weight, weight_scale)
        self.register_buffer("weight", weight)
        self.register_buffer("weight_scale", weight_scale)
        self.activations = activations

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """Multiply; any leading dimensions are tokens."""
        rows = x.reshape(-1, x.shape[-1])
        added = None if residual is None else residual.reshape(rows.shape[0], -1)
        if self.activations is ActivationFormat.BF16:
            y = kernels.w8a16_gemm_blockscaled(rows, self.weight, self.weight_scale, added)
        else:
            values, scales = kernels.quantize_fp8(rows)
            y = kernels.fp8_gemm_blockscaled(values, scales, self.weight, self.weight_scale, added)
        return y.view(*x.shape[:-1], -1)


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
        with torch.no_grad():
            layer = BlockScaledLinear(*quantize_weight(module.weight), activations)
        setattr(model.get_submodule(parent_name), child, layer)
        replaced.append(name)
    return tuple(replaced)
