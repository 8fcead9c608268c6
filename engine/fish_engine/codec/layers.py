"""The small layers of the codec.

Convolutions and what stands between them see lanes with channels first, x [lanes, channels, positions]; norms and linears see
them last, x [lanes, positions, channels]. Each layer knows the names and shapes under which its weights are published
(`published_shapes`) and takes them (`take`); in which layout it computes is its own business.
"""

from collections.abc import Mapping
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from fish_engine.codec.carried import Carried, Span, StateLayout
from fish_engine.codec.lanes import columns_product, rows_product, windows

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

    def forward(self, x: Tensor) -> Tensor:
        return rows_product(x, self.weight, self.bias)


class Snake(Layer):
    """x + sin²(α·x) / α, α per channel, channels first."""

    alpha: Tensor
    reciprocal: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self._declare("alpha", 1, channels, 1)

    def take(self, tensors: Mapping[str, Tensor]) -> None:
        self.alpha = tensors["alpha"]
        self.reciprocal = (self.alpha + 1e-9).reciprocal()

    def forward(self, x: Tensor) -> Tensor:
        wave = (x * self.alpha).sin_()
        # Products and sums stay apart: a fused one rounds once where its vector form exists and twice at the ends.
        return wave.mul_(wave).mul_(self.reciprocal).add_(x)


def unnormalised(g: Tensor, v: Tensor) -> Tensor:
    """Return the weight that weight-norm stands for: g · v / ‖v‖, the norm over all dims but 0."""
    norm: Tensor = torch.linalg.vector_norm(v, dim=(1, 2), keepdim=True)
    return v * (g / norm)


class CausalConv(Layer):
    """A convolution that sees the present and the past; the part of the past that it sees is carried.

    Weight-normed ones are published as a pair (g, v), plain ones as a weight.
    """

    matrix: Tensor  # [outputs, inputs * taps]
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
        self.past = layout.reserve(inputs, (taps - 1) * dilation + 1 - stride)

    def published_shapes(self) -> dict[str, Shape]:
        weight = (self.outputs, self.inputs, self.taps)
        return conv_shapes(weight=weight, bias=(self.outputs,), is_weight_normed=self.is_weight_normed)

    def take(self, tensors: Mapping[str, Tensor]) -> None:
        self.matrix = conv_weight(tensors).flatten(1)
        self.bias = tensors["conv.bias"]

    def forward(self, x: Tensor, carried: Carried) -> Tensor:
        taps = taps_of(x, carried, self.past, size=self.taps, stride=self.stride, dilation=self.dilation)
        return columns_product(self.matrix, taps, self.bias)


class CausalTransposedConv(Layer):
    """An up-sampling convolution of `stride` or `2 * stride` taps: each output sees one input, or that and the one before.

    It is a plain product from the inputs it sees to `stride` outputs side by side.
    """

    matrix: Tensor  # [outputs * stride, inputs * seen]
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
        self.past = layout.reserve(inputs, seen - 1)

    def published_shapes(self) -> dict[str, Shape]:
        weight = (self.inputs, self.outputs, self.seen * self.stride)
        return conv_shapes(weight=weight, bias=(self.outputs,), is_weight_normed=self.is_weight_normed)

    def take(self, tensors: Mapping[str, Tensor]) -> None:
        weight = conv_weight(tensors)  # [inputs, outputs, taps]
        taps = weight.view(self.inputs, self.outputs, self.seen, self.stride).flip(2)  # oldest input first
        self.matrix = taps.permute(1, 3, 0, 2).reshape(self.outputs * self.stride, -1)
        self.bias = tensors["conv.bias"].repeat_interleave(self.stride)

    def forward(self, x: Tensor, carried: Carried) -> Tensor:
        out = columns_product(self.matrix, taps_of(x, carried, self.past, size=self.seen), self.bias)
        side_by_side = out.view(len(out), self.outputs, self.stride, -1)  # [lanes, outputs, stride, positions]
        return side_by_side.transpose(2, 3).flatten(2)


def taps_of(x: Tensor, carried: Carried, past: Span, *, size: int, stride: int = 1, dilation: int = 1) -> Tensor:
    """Return what a convolution reads at each output, [lanes, channels * size, outputs]."""
    if past.size == 0:  # a lane has all that its outputs read
        return windows(x, frames=1, size=size, stride=stride, dilation=dilation)
    joined = carried.join(past, x)
    return windows(joined, frames=carried.frames, size=size, stride=stride, dilation=dilation)


def conv_shapes(*, weight: Shape, bias: Shape, is_weight_normed: bool) -> dict[str, Shape]:
    """Return the published names and shapes of a convolution's tensors."""
    if not is_weight_normed:
        return {"conv.weight": weight, "conv.bias": bias}
    return {
        "conv.parametrizations.weight.original0": (weight[0], 1, 1),
        "conv.parametrizations.weight.original1": weight,
        "conv.bias": bias,
    }


def conv_weight(tensors: Mapping[str, Tensor]) -> Tensor:
    """Return a convolution's weight from its published tensors."""
    if "conv.weight" in tensors:
        return tensors["conv.weight"]
    return unnormalised(
        tensors["conv.parametrizations.weight.original0"], tensors["conv.parametrizations.weight.original1"]
    )
