"""A request as the scheduler sees it: positions and blocks, no text, no codes, no audio."""

from dataclasses import dataclass
from enum import Enum


class FinishReason(Enum):
    """Why a request made its last frame."""

    END = "end"
    """The model ended the utterance."""
    LENGTH = "length"
    """The frame limit was reached."""


@dataclass(slots=True, kw_only=True)
class Request:
    """Where one utterance stands. Changed by `Scheduler` alone.

    Its positions are the prompt, then the frames made so far. `cached_len` counts those whose keys and values are stored;
    they lie in `blocks`, in order. A request that holds blocks is running, one that holds none is waiting.
    """

    request_id: int
    """Grows with arrival, so it is also the order of service."""
    prompt_len: int
    frame_limit: int
    frames_made: int = 0
    cached_len: int = 0
    blocks: tuple[int, ...] = ()

    @property
    def known_len(self) -> int:
        """Positions whose column is known."""
        return self.prompt_len + self.frames_made

    @property
    def extend_len(self) -> int:
        """Known positions that are not stored yet. Once they all are, the next frame can be drawn."""
        return self.known_len - self.cached_len

    @property
    def longest_len(self) -> int:
        """Positions that it may ever need to store: the last frame is never looked back at."""
        return self.prompt_len + self.frame_limit - 1
