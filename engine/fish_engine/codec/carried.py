"""What a causal network remembers of a stream between two calls: one flat row of numbers.

Every layer that looks back reserves a span of that row when it is built, so the memory of a stream has one known size, and
taking, batching or dropping streams is a matter of rows.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A layer's part of the row."""

    offset: int
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Numbers in the span."""
        return math.prod(self.shape)


class StateLayout:
    """Hands out spans while a network is built; `size` is the length of a finished row."""

    def __init__(self) -> None:
        self.size = 0

    def reserve(self, *shape: int) -> Span:
        """Return a new span that holds a tensor of this shape per stream."""
        span = Span(offset=self.size, shape=shape)
        self.size += span.size
        return span


class Carried:
    """The rows of the streams of one call: as they were before it, and as they will be after.

    A row of zeros and position 0 is the start of a stream: causal padding is silence.
    """

    def __init__(self, *, before: Tensor, first_frames: Tensor) -> None:
        """Take `before` [streams, size] and `first_frames` [streams], the index of the first frame of this call."""
        self.before = before
        self.after = torch.empty_like(before)
        self.first_frames = first_frames

    def prepend(self, span: Span, x: Tensor) -> Tensor:
        """Put what is remembered in front of x along dim 1, and remember the end of the result.

        Shapes: span (rows, *rest), x [streams, length, *rest] → [streams, rows + length, *rest].
        """
        if span.size == 0:
            return x
        streams, rows = x.shape[0], span.shape[0]
        end = span.offset + span.size
        joined = torch.cat([self.before[:, span.offset : end].view(streams, *span.shape), x], dim=1)
        self.after[:, span.offset : end].view(streams, *span.shape).copy_(joined[:, -rows:])
        return joined
