"""The arithmetic that makes a streamed decode equal to an offline one, bit for bit.

A lane is one frame of one stream. BLAS adds up a product in an order that depends on the shape it is given, so a longer chunk or
a larger batch changes last bits. Here each lane is its own product of a shape that depends on the layer alone; how many lanes go
together in one call changes nothing. `docs/decisions/0005-exact-streaming.md` has the measurements behind this.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

FEW_POSITIONS = 16
"""Below this many positions a lane is multiplied transposed: MKL turns a one-column product into a vector product of another
order, and is slow with a few columns."""


@contextmanager
def one_thread_per_product() -> Iterator[None]:
    """Let no BLAS call divide its sum among threads: with fewer lanes than threads MKL would, and round differently.

    The number belongs to the process: only one thread at a time may be inside, and that is the loop that decodes. Encoding runs
    beside it and goes without.
    """
    threads = torch.get_num_threads()
    if threads == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def rows_product(x: Tensor, matrix: Tensor, bias: Tensor | None) -> Tensor:
    """Return x @ matrixᵀ + bias, each lane by itself.

    Shapes: x [lanes, rows, inputs], matrix [outputs, inputs], bias [outputs] → [lanes, rows, outputs].
    On an accelerator the lanes become rows of one product: bit-equality is promised on a CPU only.
    """
    if x.device.type != "cpu":
        return torch.nn.functional.linear(x, matrix, bias)
    # Copied even where it counts as contiguous: the stride of a dimension of length 1 means nothing, yet BLAS is chosen by it.
    plain = x.clone(memory_format=torch.contiguous_format)
    product = torch.bmm(plain, matrix.t().expand(len(x), -1, -1))
    return product if bias is None else product.add_(bias)


def columns_product(matrix: Tensor, x: Tensor, bias: Tensor) -> Tensor:
    """Return matrix @ x + bias, each lane by itself.

    Shapes: x [lanes, inputs, positions], matrix [outputs, inputs], bias [outputs] → [lanes, outputs, positions].
    """
    if x.shape[2] < FEW_POSITIONS:
        return rows_product(x.transpose(1, 2), matrix, bias).transpose(1, 2)
    return torch.bmm(matrix.expand(len(x), -1, -1), x).add_(bias[:, None])


def windows(x: Tensor, *, frames: int, size: int, stride: int = 1, dilation: int = 1) -> Tensor:
    """Cut what a convolution of `size` taps reads at each of its outputs.

    Shapes: x [streams, channels, past + length] → [streams * frames, channels * size, outputs per frame].
    """
    streams, channels, length = x.shape
    outputs = ((length - (size - 1) * dilation - 1) // stride + 1) // frames
    taps = x.contiguous().as_strided(
        (streams, frames, channels, size, outputs),
        (channels * length, outputs * stride, length, dilation, stride),
    )
    return taps.reshape(streams * frames, channels * size, outputs)
