"""Checks of operands before anything is computed. The compiled library makes the same ones for tensors on a GPU."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fish_engine.kernels.errors import OperandError


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSpec:
    """A row-major tensor without gaps."""

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a row-major tensor without gaps."""
    strides: list[int] = []
    stride = 1
    for size in reversed(shape):
        strides.append(stride)
        stride *= size
    return tuple(reversed(strides))


def check_tensor(tensor: Tensor, spec: TensorSpec, device: torch.device) -> None:
    """Raise OperandError unless the tensor is on the device and is what the spec says."""
    if tensor.device != device:
        raise OperandError(f"{spec.name}: expected a tensor on {device}, found one on {tensor.device}")
    if tensor.dtype != spec.dtype:
        raise OperandError(f"{spec.name}: expected {spec.dtype}, found {tensor.dtype}")
    strides = contiguous_strides(spec.shape)
    fits = tuple(tensor.shape) == spec.shape and all(
        size == 1 or found == wanted for size, found, wanted in zip(spec.shape, tensor.stride(), strides, strict=True)
    )
    if not fits:
        raise OperandError(
            f"{spec.name}: expected shape {list(spec.shape)} with strides {list(strides)}, "
            f"found shape {list(tensor.shape)} with strides {list(tensor.stride())}"
        )


def check_matrix(name: str, tensor: Tensor) -> tuple[int, int]:
    """Return the two sizes of a matrix; raise OperandError on any other number of dimensions."""
    if tensor.dim() != 2:
        raise OperandError(f"{name}: expected 2 dimensions, found {tensor.dim()} (shape {list(tensor.shape)})")
    return tensor.shape[0], tensor.shape[1]


def check_size(name: str, value: int, *, multiple_of: int, at_most: int) -> None:
    """Raise OperandError unless the size is a multiple in range."""
    if value < 1 or value > at_most or value % multiple_of:
        raise OperandError(
            f"{name}: expected a multiple of {multiple_of} from {multiple_of} to {at_most}, found {value}"
        )
