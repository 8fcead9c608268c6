"""The codec's decoder for a GPU: the layers of `codec/`, with the positions of a stream in one row and channels side by side.

A convolution is a copy of what each output reads, and one matrix product: the library's own are fast for some of these shapes and
a hundred times slower for others. Apart from that, values pass through memory as seldom as stock operations allow: an activation
and the join with the past are one pass; biases wait for the next such pass; an up-sampling product writes its outputs where the
next layer reads them. Products are in `dtype`; what is carried, the transformer and the sound are float32.
"""

import math
from typing import Final, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from fish_engine.codec.blocks import ResidualUnit
from fish_engine.codec.carried import Carried, Span
from fish_engine.codec.dac import Codec, DecoderBlock
from fish_engine.codec.layers import CausalConv, CausalTransposedConv, Snake
from fish_engine.gpu.step import Compiler, uncompiled
from fish_engine.gpu.window import attended, behind_past, past_of, remember

_TAPS_MULTIPLE: Final = 8
"""Outputs of the last product are filled up to a multiple of this."""
_SQUARED_SINE: Final = [
    (-1) ** (k + 1) * (2 * math.pi) ** (2 * k) / (2 * math.factorial(2 * k)) for k in range(9, 0, -1)
]
"""Factors of r^18 .. r^2 in sin²(π·r): within 1e-7 for |r| up to a half."""


class Bend:
    """A snake and the bias that the convolution before it left out."""

    def __init__(self, snake: Snake, bias: Tensor | None) -> None:
        """Take the bias [channels] of what comes in."""
        self.alpha = snake.alpha.flatten()
        self.reciprocal = snake.reciprocal.flatten()
        self.bias = torch.zeros_like(self.alpha) if bias is None else bias


def squared_sine(x: Tensor) -> Tensor:
    """Return sin²(x) for float32, by a polynomial: the exact sine costs more than the memory that it waits for."""
    turns = x * (1 / math.pi)
    turns = turns - turns.round()
    square = turns * turns
    value = torch.full_like(square, _SQUARED_SINE[0])
    for factor in _SQUARED_SINE[1:]:
        value = value * square + factor
    return value * square


def bent(x: Tensor, alpha: Tensor, reciprocal: Tensor, bias: Tensor) -> Tensor:
    """Return y + sin²(α·y) / α with y = x + bias, for x [..., channels]; in float32 inside."""
    wide = x.float() + bias
    return (wide + squared_sine(wide * alpha) * reciprocal).to(x.dtype)


def bent_and_joined(x: Tensor, alpha: Tensor, reciprocal: Tensor, bias: Tensor, past: Tensor) -> Tensor:
    """Return `bent` of x [S, T, C] behind past [S, P, C]."""
    return torch.cat((past.to(x.dtype), bent(x, alpha, reciprocal, bias)), dim=1)


def windows(joined: Tensor, taps: int, dilation: int) -> Tensor:
    """Return what a convolution reads at each position, [S, T, taps, C] of joined [S, past + T, C]."""
    starts = torch.arange(joined.shape[1] - (taps - 1) * dilation, device=joined.device)
    return joined[:, starts[:, None] + torch.arange(taps, device=joined.device) * dilation]


def added(x: Tensor, more: Tensor, bias: Tensor) -> Tensor:
    """Return x + more + bias."""
    return (x.float() + more.float() + bias).to(x.dtype)


def summed_taps(products: Tensor, bias: Tensor, taps: int) -> Tensor:
    """Return tanh of what a convolution to one channel gives [S, T], from each position's product with each tap."""
    length = products.shape[1] - taps + 1
    total = products[:, :length, 0].float()
    for tap in range(1, taps):
        total = total + products[:, tap : tap + length, tap].float()
    return (total + bias).tanh()


class Convolution:
    """A causal convolution over [S, past + T, inputs] without its bias."""

    def __init__(self, conv: CausalConv, vocoder: "Vocoder") -> None:
        weight = conv.matrix.view(conv.outputs, conv.inputs, conv.taps).transpose(1, 2)
        self._weight = weight.flatten(1).to(vocoder.dtype)  # [outputs, taps * inputs]
        self._taps, self._dilation = conv.taps, conv.dilation
        self._windows = vocoder.windows

    def __call__(self, joined: Tensor) -> Tensor:
        """Return [S, T, outputs]."""
        return F.linear(self._windows(joined, self._taps, self._dilation).flatten(2), self._weight)


class Upsampling:
    """A transposed convolution: from each position and the one before it, `stride` positions, without its bias."""

    def __init__(self, conv: CausalTransposedConv, vocoder: "Vocoder") -> None:
        weight = conv.matrix.view(conv.outputs, conv.stride, conv.inputs, conv.seen).permute(1, 0, 3, 2)
        self._weight = weight.reshape(conv.stride * conv.outputs, -1).to(vocoder.dtype)  # [.., seen * inputs]
        self._outputs, self._seen = conv.outputs, conv.seen
        self._windows = vocoder.windows
        self.bias = conv.bias.view(conv.outputs, conv.stride)[:, 0].float()

    def __call__(self, joined: Tensor) -> Tensor:
        """Return [S, stride * T, outputs] of [S, 1 + T, inputs]."""
        out = F.linear(self._windows(joined, self._seen, 1).flatten(2), self._weight)  # [S, T, stride * outputs]
        return out.view(len(joined), -1, self._outputs)


class Unit:
    """Two snakes, a dilated and a pointwise convolution, added to the input."""

    def __init__(self, unit: ResidualUnit, vocoder: "Vocoder", incoming_bias: Tensor | None) -> None:
        """Take the bias that its input still lacks."""
        first, dilated, second, pointwise = unit.block
        assert isinstance(dilated, CausalConv)
        assert isinstance(pointwise, CausalConv)
        self._vocoder = vocoder
        self._span = dilated.past
        self._first = Bend(cast(Snake, first), incoming_bias)
        self._second = Bend(cast(Snake, second), dilated.bias.float())
        self._dilated = Convolution(dilated, vocoder)
        self._pointwise = pointwise.matrix.to(vocoder.dtype)
        self._bias = pointwise.bias.float() + self._first.bias

    def __call__(self, x: Tensor, carried: Carried) -> Tensor:
        """Return x [S, T, C] after the unit."""
        vocoder, second = self._vocoder, self._second
        out = self._dilated(vocoder.joined(x, self._first, self._span, carried))
        out = F.linear(vocoder.bent(out, second.alpha, second.reciprocal, second.bias), self._pointwise)
        return vocoder.added(x, out, self._bias)


class Stage:
    """One block of the decoder: a snake, an up-sampling convolution, three units."""

    def __init__(self, block: DecoderBlock, vocoder: "Vocoder", bias: Tensor | None) -> None:
        snake, upsampling, *units = block.block
        assert isinstance(upsampling, CausalTransposedConv)
        self._vocoder = vocoder
        self._span = upsampling.past
        self._bend = Bend(cast(Snake, snake), bias)
        self._upsampling = Upsampling(upsampling, vocoder)
        biases = [self._upsampling.bias] + [None] * (len(units) - 1)
        self._units = [Unit(cast(ResidualUnit, unit), vocoder, bias) for unit, bias in zip(units, biases, strict=True)]

    def __call__(self, x: Tensor, carried: Carried) -> Tensor:
        """Return [S, stride * T, outputs] of x [S, T, inputs]."""
        x = self._upsampling(self._vocoder.joined(x, self._bend, self._span, carried))
        for unit in self._units:
            x = unit(x, carried)
        return x


class Vocoder:
    """From codes to sound, `Codec.decode_frames` up to rounding. Its carried rows are its own: they are laid out otherwise."""

    def __init__(self, codec: Codec, *, dtype: torch.dtype, compiler: Compiler = uncompiled) -> None:
        """Take what makes the small functions faster. The weights of `codec` are used, or copied where another form is needed."""
        self.dtype = dtype
        self.bent, self._joined, self.added = compiler(bent), compiler(bent_and_joined), compiler(added)
        self.windows, self._summed_taps = compiler(windows), compiler(summed_taps)
        self._codec = codec
        first, *blocks, snake, last = codec.decoder.model
        assert isinstance(first, CausalConv)
        assert isinstance(last, CausalConv)
        self._first, self._first_span = Convolution(first, self), first.past
        biases = [first.bias.float()] + [None] * (len(blocks) - 1)
        self._stages = [
            Stage(cast(DecoderBlock, block), self, bias) for block, bias in zip(blocks, biases, strict=True)
        ]
        self._last_bend, self._last_span = Bend(cast(Snake, snake), None), last.past
        taps = last.matrix.view(last.inputs, last.taps).t()  # [taps, inputs]
        self._last = F.pad(taps, (0, 0, 0, -last.taps % _TAPS_MULTIPLE)).to(dtype)
        self._taps, self._last_bias = last.taps, last.bias.float()

    @torch.no_grad()
    def decode_frames(self, codes: Tensor, carried: Carried) -> Tensor:
        """Return the samples [streams, frames * samples_per_frame] of the next codes [streams, codebooks, frames]."""
        latents = attended(self._codec.quantizer.post_module, self._embedded(codes), carried)
        lanes = latents.flatten(0, 1)[..., None]  # [lanes, latent, 1]
        for block in self._codec.quantizer.upsample:
            lanes = block(lanes, carried)
        x = torch.unflatten(lanes, 0, (len(codes), -1)).transpose(2, 3).flatten(1, 2)  # [S, T, latent]
        x = self._first(behind_past(x.to(self.dtype), self._first_span, carried))
        for stage in self._stages:
            x = stage(x, carried)
        products = F.linear(self.joined(x, self._last_bend, self._last_span, carried), self._last)
        return self._summed_taps(products, self._last_bias, self._taps)

    def joined(self, x: Tensor, bend: Bend, span: Span, carried: Carried) -> Tensor:
        """Return x [S, T, C] bent, behind what is remembered, and remember its end."""
        joined = self._joined(x, bend.alpha, bend.reciprocal, bend.bias, past_of(carried, span))
        remember(joined, span, carried)
        return joined

    def _embedded(self, codes: Tensor) -> Tensor:
        """Return the sum of what the codes [S, codebooks, F] stand for, [S, F, latent]."""
        parts = [
            codebook.latents[codes[:, index].clamp(max=codebook.size - 1)]
            for index, codebook in enumerate(self._codec.quantizer.codebooks)
        ]
        return torch.stack(parts).sum(0)
