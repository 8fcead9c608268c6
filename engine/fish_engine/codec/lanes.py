"""The arithmetic that makes a streamed decode equal to an offline one, bit for bit.

A lane is one frame of one stream. BLAS adds up a product in an order that depends on the shape it is given, so a longer chunk or
a larger batch changes last bits. Here each lane is its own product of a shape that depends on the layer alone; how many lanes go
together in one call changes nothing. `docs/decisions/0005-exact-streaming.md` has the measurements behind this.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

MIN_OUTPUTS = 16
"""Narrowest result that is computed as it is: MKL turns a one-column product into a vector product of another order."""


@contextmanager
def one_thread_per_product() -> Iterator[None]:
    """Let no BLAS call divide its sum among threads: with fewer lanes than threads MKL would, and round differently."""
    threads = torch.get_num_threads()
    if threads == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def lane_product(x: Tensor, matrix: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return x @ matrixᵀ + bias, each lane by itself.

    Shapes: x [lanes, rows, inputs], matrix [outputs, inputs], bias [outputs] → [lanes, rows, outputs].
    On an accelerator the lanes become rows of one product: bit-equality is promised on a CPU only.
    """
    if x.device.type != "cpu":
        return torch.nn.functional.linear(x, matrix, bias)
    per_lane = matrix.t().expand(x.shape[0], -1, -1)
    return torch.bmm(x, per_lane) if bias is None else torch.baddbmm(bias, x, per_lane)


def windows(x: Tensor, *, frames: int, size: int, stride: int = 1, dilation: int = 1) -> Tensor:
    """Cut what a convolution of `size` taps reads at each of its outputs.

    Shapes: x [streams, context + length, channels] → [streams * frames, outputs per frame, size * channels].
    """
    streams, length, channels = x.shape
    outputs = (length - (size - 1) * dilation - 1) // stride + 1
    taps = x.contiguous().as_strided(
        (streams, outputs, size, channels), (length * channels, stride * channels, dilation * channels, 1)
    )
    return taps.reshape(streams * frames, outputs // frames, size * channels)
