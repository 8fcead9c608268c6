"""When to decode which frames: a first chunk as small as can be, then larger ones as the client's lead grows.

Pure: integers and seconds in, a plan out. Small chunks bring sound early, large ones cost less each; how much sound the client
already has says which of the two matters now.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkPolicy:
    """How chunks grow."""

    first_frames: int = 1
    """Frames in the first chunk. More than one delays first sound, but survives slower steps."""
    max_frames: int = 16
    """Largest chunk: bounds how long one stream's work keeps the others waiting."""
    low_lead_s: float = 0.1
    """With less sound than this ahead of its ears, a client gets whatever is there."""

    def __post_init__(self) -> None:
        if not 1 <= self.first_frames <= self.max_frames:
            raise ValueError(
                f"first_frames must be from 1 to max_frames ({self.max_frames}), found {self.first_frames}"
            )
        if not self.low_lead_s >= 0:
            raise ValueError(f"low_lead_s must not be negative, found {self.low_lead_s}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamView:
    """What the planner sees of one stream."""

    slot: int
    frames_pending: int
    """Frames that exist but are not sound yet."""
    frames_decoded: int
    is_finished: bool
    """No frame will follow those that are pending."""
    lead_s: float
    """Sound the client has and has not yet played; see `client_lead_s`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Decode the next `frames` of the stream in `slot`."""

    slot: int
    frames: int


def plan_chunks(views: Sequence[StreamView], policy: ChunkPolicy) -> tuple[Chunk, ...]:
    """Choose what to decode now, at most one chunk a stream."""
    chunks = (Chunk(slot=view.slot, frames=_frames_now(view, policy)) for view in views)
    return tuple(chunk for chunk in chunks if chunk.frames > 0)


def client_lead_s(*, sound_sent_s: float, first_sent_at_s: float | None, now_s: float) -> float:
    """Return how much sound a client that plays without a pause since the first chunk still has; negative in a gap."""
    if first_sent_at_s is None:
        return 0.0
    return sound_sent_s - (now_s - first_sent_at_s)


def _frames_now(view: StreamView, policy: ChunkPolicy) -> int:
    wanted = _chunk_after(view.frames_decoded, policy)
    if view.is_finished:
        return min(view.frames_pending, policy.max_frames)
    if view.frames_pending >= wanted:
        return wanted
    if view.frames_decoded > 0 and view.lead_s < policy.low_lead_s:
        return view.frames_pending
    return 0


def _chunk_after(frames_decoded: int, policy: ChunkPolicy) -> int:
    """Return the largest power of two that is not above the frames so far: 1, 1, 2, 4, 8, 16, 16 from the start.

    Few sizes mean that streams at different places can be decoded together.
    """
    grown = 1 << max(0, frames_decoded.bit_length() - 1)
    return min(policy.max_frames, max(policy.first_frames, grown))
