"""The traffic wave: how many people listen at each moment. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """A stretch of time with a constant number of listeners, each of whom starts a stream as soon as the last one ended."""

    name: str
    duration_s: float
    listeners: int


WAVE: Final = (
    Phase(name="quiet", duration_s=12, listeners=1),
    Phase(name="rising", duration_s=20, listeners=7),
    Phase(name="burst", duration_s=30, listeners=14),
    Phase(name="quiet again", duration_s=30, listeners=1),
)


def duration_s(wave: Sequence[Phase]) -> float:
    """Return the length of the whole wave."""
    return sum(phase.duration_s for phase in wave)


def phase_at(wave: Sequence[Phase], elapsed_s: float) -> Phase | None:
    """Return the phase at this moment, or nothing once the wave has passed."""
    end_s = 0.0
    for phase in wave:
        end_s += phase.duration_s
        if elapsed_s < end_s:
            return phase
    return None
