"""The blocks that encoder, quantiser and decoder are made of."""

from collections.abc import Mapping

from torch import Tensor, nn
from torch.nn import functional

from fish_engine.codec.carried import Carried, StateLayout
from fish_engine.codec.layers import (
    CausalConv,
    CausalTransposedConv,
    Layer,
    LayerNorm,
    Linear,
    Shape,
    Snake,
)

DILATIONS = (1, 3, 9)


class ResidualUnit(nn.Module):
    """Snake, dilated convolution, snake, pointwise convolution, added to the input."""

    def __init__(self, layout: StateLayout, channels: int, dilation: int) -> None:
        super().__init__()
        self.block = nn.ModuleList(
            [
                Snake(channels),
                CausalConv(layout, channels, channels, taps=7, dilation=dilation),
                Snake(channels),
                CausalConv(layout, channels, channels, taps=1),
            ]
        )

    def forward(self, x: Tensor, carried: Carried) -> Tensor:
        first_snake, dilated, second_snake, pointwise = self.block
        out: Tensor = pointwise(second_snake(dilated(first_snake(x), carried)), carried)
        return out.add_(x)


class DepthwiseConv(Layer):
    """Seven taps on each channel by itself, summed tap by tap: the order of the sum is the order of the loop."""

    weight: Tensor  # [taps, channels, 1]
    bias: Tensor  # [channels, 1]

    def __init__(self, layout: StateLayout, channels: int, taps: int = 7) -> None:
        super().__init__()
        self.channels, self.taps = channels, taps
        self.past = layout.reserve(channels, taps - 1)

    def published_shapes(self) -> dict[str, Shape]:
        return {"conv.weight": (self.channels, 1, self.taps), "conv.bias": (self.channels,)}

    def take(self, tensors: Mapping[str, Tensor]) -> None:
        self.weight = tensors["conv.weight"].permute(2, 0, 1).contiguous()
        self.bias = tensors["conv.bias"][:, None]

    def forward(self, x: Tensor, carried: Carried) -> Tensor:
        joined = carried.join(self.past, x)  # [streams, channels, past + length]
        length = joined.shape[2] - self.taps + 1
        out = joined[..., :length] * self.weight[0]
        for tap in range(1, self.taps):
            out += joined[..., tap : tap + length] * self.weight[tap]
        out += self.bias
        by_frame = out.view(*out.shape[:2], carried.frames, -1).transpose(1, 2)  # [streams, frames, channels, length]
        return by_frame.flatten(0, 1)


class ConvNeXt(Layer):
    """Depthwise convolution, LayerNorm, a widening and narrowing pair of linears, scaled and added to the input."""

    gamma: Tensor

    def __init__(self, layout: StateLayout, channels: int) -> None:
        super().__init__()
        self._declare("gamma", channels)
        self.dwconv = DepthwiseConv(layout, channels)
        self.norm = LayerNorm(channels)
        self.pwconv1 = Linear(channels, 4 * channels, has_bias=True)
        self.pwconv2 = Linear(4 * channels, channels, has_bias=True)

    def forward(self, x: Tensor, carried: Carried) -> Tensor:
        rows = self.norm(self.dwconv(x, carried).transpose(1, 2))  # [lanes, positions, channels]
        narrowed: Tensor = self.pwconv2(functional.gelu(self.pwconv1(rows)))
        return x + (narrowed * self.gamma).transpose(1, 2)


class Resample(nn.ModuleList):
    """A strided or transposed convolution followed by a ConvNeXt block, as the quantiser changes its frame rate."""

    def forward(self, x: Tensor, carried: Carried) -> Tensor:
        for part in self:
            x = part(x, carried)
        return x


def downsample(layout: StateLayout, channels: int, stride: int) -> Resample:
    """Return the block that keeps one position of `stride`."""
    conv = CausalConv(layout, channels, channels, taps=stride, stride=stride, is_weight_normed=False)
    return Resample([conv, ConvNeXt(layout, channels)])


def upsample(layout: StateLayout, channels: int, stride: int) -> Resample:
    """Return the block that makes `stride` positions of one."""
    conv = CausalTransposedConv(layout, channels, channels, stride=stride, seen=1, is_weight_normed=False)
    return Resample([conv, ConvNeXt(layout, channels)])
