"""What a causal network remembers of a stream between two calls: one flat row of numbers.

Every layer that looks back reserves a span of that row when it is built, so the memory of a stream has one known size, and
taking, batching or dropping streams is a matter of rows.
"""

import math
from dataclasses import dataclass
from typing import Self

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

    A lane is one frame of one stream; the lanes of a call are its streams, and within each the frames in order. A row of zeros
    at frame 0 is the start of a stream: causal padding is silence.
    """

    def __init__(self, *, before: Tensor, first_frames: Tensor, frames: int) -> None:
        """Take `before` [streams, size], `first_frames` [streams], and how many frames of each stream this call has."""
        self.before = before
        self.after = torch.empty_like(before)
        self.first_frames = first_frames
        self.frames = frames
        steps = torch.arange(frames, device=first_frames.device)
        self.frame_indices = (first_frames[:, None] + steps).flatten()  # [lanes]

    @classmethod
    def at_start(cls, layout: StateLayout, *, streams: int, device: torch.device) -> Self:
        """Return new streams of which nothing has been heard."""
        rows = torch.zeros(streams, layout.size, device=device)
        carried = cls(before=rows, first_frames=torch.zeros(streams, dtype=torch.long, device=device), frames=0)
        carried.after = rows  # no frame has passed
        return carried

    def followed_by(self, frames: int) -> "Carried":
        """Return the state of the next call, which goes on where this one ended."""
        return Carried(before=self.after, first_frames=self.first_frames + self.frames, frames=frames)

    def join(self, span: Span, x: Tensor) -> Tensor:
        """Put each stream's lanes in a row behind what is remembered of it, and remember the end of the result.

        Shapes: span (channels, past), x [lanes, channels, length] → [streams, channels, past + frames * length].
        """
        streams, (channels, past), length = len(self.before), span.shape, x.shape[2]
        end = span.offset + span.size
        joined = x.new_empty(streams, channels, past + self.frames * length)
        joined[..., :past] = self.before[:, span.offset : end].view(streams, channels, past)
        by_stream = x.view(streams, self.frames, channels, length).transpose(1, 2)
        joined[..., past:].view(streams, channels, self.frames, length).copy_(by_stream)
        self.after[:, span.offset : end].view(streams, channels, past).copy_(joined[..., -past:])
        return joined
