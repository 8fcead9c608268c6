"""The small layers of the codec, channels last: x is [streams, frames * positions per frame, channels] throughout.

Each layer knows the names and shapes under which its weights are published (`published_shapes`) and takes them (`take`); the
compute layout is its own business.
"""

from collections.abc import Mapping
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from fish_engine.codec.carried import Carried, StateLayout
from fish_engine.codec.lanes import MIN_OUTPUTS, lane_product, windows

Shape: TypeAlias = tuple[int, ...]


class Layer(nn.Module):
    """A layer with weights of its own, which are buffers: nothing here is trained."""

    def published_shapes(self) -> dict[str, Shape]:
        """Return the shape of each tensor of this layer by its published name, relative to the layer."""
        return {name: tuple(buffer.shape) for name, buffer in self.named_buffers(recurse=False)}

    def take(self, tensors: Mapping[str, Tensor]) -> None:
        """Adopt the published tensors, whose names and shapes have been checked."""
        for name, tensor in tensors.items():
            setattr(self, name, tensor)

    def _declare(self, name: str, *shape: int) -> None:
        self.register_buffer(name, torch.empty(shape), persistent=False)


class RMSNorm(Layer):
    """x / rms(x) · weight."""

    weight: Tensor

    def __init__(self, dim: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self._declare("weight", dim)

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.eps) * self.weight


class LayerNorm(Layer):
    """Mean and variance over channels, then weight and bias."""

    weight: Tensor
    bias: Tensor

    def __init__(self, dim: int) -> None:
        super().__init__()
        self._declare("weight", dim)
        self._declare("bias", dim)

    def forward(self, x: Tensor) -> Tensor:
        return functional.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-6)


class LayerScale(Layer):
    """x · gamma."""

    gamma: Tensor

    def __init__(self, dim: int) -> None:
        super().__init__()
        self._declare("gamma", dim)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gamma


class Linear(Layer):
    """x @ weightᵀ, with or without a bias, lane by lane."""

    weight: Tensor
    bias: Tensor | None

    def __init__(self, inputs: int, outputs: int, *, has_bias: bool = False) -> None:
        super().__init__()
        self._declare("weight", outputs, inputs)
        if has_bias:
            self._declare("bias", outputs)
        else:
            self.bias = None

    def forward(self, x: Tensor, frames: int) -> Tensor:
        streams, length, channels = x.shape
        lanes = x.reshape(streams * frames, length // frames, channels)
        return lane_product(lanes, self.weight, self.bias).view(streams, length, -1)


class Snake(Layer):
    """x + sin²(α·x) / α, α per channel."""

    alpha: Tensor
    reciprocal: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self._declare("alpha", 1, channels, 1)

    def take(self, tensors: Mapping[str, Tensor]) -> None:
        self.alpha = tensors["alpha"].flatten()
        self.reciprocal = (self.alpha + 1e-9).reciprocal()

    def forward(self, x: Tensor) -> Tensor:
        wave = torch.sin(x * self.alpha)
        # Products and sums stay apart: a fused one rounds once where its vector form exists and twice at the ends.
        return x + wave * wave * self.reciprocal


def unnormalised(g: Tensor, v: Tensor) -> Tensor:
    """Return the weight that weight-norm stands for: g · v / ‖v‖, the norm over all dims but 0."""
    norm: Tensor = torch.linalg.vector_norm(v, dim=(1, 2), keepdim=True)
    return v * (g / norm)


class CausalConv(Layer):
    """A convolution that sees the present and the past; `context` samples of the past are carried.

    Weight-normed ones are published as a pair (g, v), plain ones as a weight.
    """

    matrix: Tensor  # [outputs, taps * inputs]
    bias: Tensor

    def __init__(
        self,
        layout: StateLayout,
        inputs: int,
        outputs: int,
        *,
        taps: int,
        stride: int = 1,
        dilation: int = 1,
        is_weight_normed: bool = True,
    ) -> None:
        super().__init__()
        self.inputs, self.outputs, self.taps = inputs, outputs, taps
        self.stride, self.dilation = stride, dilation
        self.is_weight_normed = is_weight_normed
        self.context = layout.reserve((taps - 1) * dilation + 1 - stride, inputs)

    def published_shapes(self) -> dict[str, Shape]:
        return conv_shapes(self.outputs, self.inputs, self.taps, self.outputs, is_weight_normed=self.is_weight_normed)

    def take(self, tensors: Mapping[str, Tensor]) -> None:
        weight = conv_weight(tensors)  # [outputs, inputs, taps]
        missing_rows = max(0, MIN_OUTPUTS - self.outputs)
        matrix = weight.permute(0, 2, 1).reshape(self.outputs, -1)
        self.matrix = functional.pad(matrix, (0, 0, 0, missing_rows))
        self.bias = functional.pad(tensors["conv.bias"], (0, missing_rows))

    def forward(self, x: Tensor, carried: Carried, frames: int) -> Tensor:
        joined = carried.prepend(self.context, x)
        taps = windows(joined, frames=frames, size=self.taps, stride=self.stride, dilation=self.dilation)
        out = lane_product(taps, self.matrix, self.bias)
        return out[..., : self.outputs].reshape(x.shape[0], -1, self.outputs)


class CausalTransposedConv(Layer):
    """An up-sampling convolution of `stride` or `2 * stride` taps: each output sees one input, or that and the one before.

    It is a plain product from the inputs it sees to `stride` outputs side by side.
    """

    matrix: Tensor  # [stride * outputs, seen * inputs]
    bias: Tensor

    def __init__(
        self,
        layout: StateLayout,
        inputs: int,
        outputs: int,
        *,
        stride: int,
        seen: int = 2,
        is_weight_normed: bool = True,
    ) -> None:
        super().__init__()
        self.inputs, self.outputs, self.stride, self.seen = inputs, outputs, stride, seen
        self.is_weight_normed = is_weight_normed
        self.context = layout.reserve(seen - 1, inputs)

    def published_shapes(self) -> dict[str, Shape]:
        taps = self.seen * self.stride
        return conv_shapes(self.inputs, self.outputs, taps, self.outputs, is_weight_normed=self.is_weight_normed)

    def take(self, tensors: Mapping[str, Tensor]) -> None:
        weight = conv_weight(tensors)  # [inputs, outputs, taps]
        taps = weight.view(self.inputs, self.outputs, self.seen, self.stride).flip(2)  # oldest input first
        self.matrix = taps.permute(3, 1, 2, 0).reshape(self.stride * self.outputs, -1)
        self.bias = tensors["conv.bias"].repeat(self.stride)

    def forward(self, x: Tensor, carried: Carried, frames: int) -> Tensor:
        taps = windows(carried.prepend(self.context, x), frames=frames, size=self.seen)
        return lane_product(taps, self.matrix, self.bias).reshape(x.shape[0], -1, self.outputs)


def conv_shapes(rows: int, columns: int, taps: int, biases: int, *, is_weight_normed: bool) -> dict[str, Shape]:
    """Return the published names and shapes of a convolution's tensors."""
    weight: dict[str, Shape] = {"conv.weight": (rows, columns, taps)}
    if is_weight_normed:
        weight = {
            "conv.parametrizations.weight.original0": (rows, 1, 1),
            "conv.parametrizations.weight.original1": (rows, columns, taps),
        }
    return {"conv.bias": (biases,), **weight}


def conv_weight(tensors: Mapping[str, Tensor]) -> Tensor:
    """Return a convolution's weight from its published tensors."""
    if "conv.weight" in tensors:
        return tensors["conv.weight"]
    return unnormalised(
        tensors["conv.parametrizations.weight.original0"], tensors["conv.parametrizations.weight.original1"]
    )
