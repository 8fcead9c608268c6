"""How long each stage of the demo took."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fish_local.progress import Narrator


@dataclass(slots=True)
class StageClock:
    """Times stages in the order in which they end."""

    narrator: Narrator
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str, story: str) -> Iterator[None]:
        """Tell what happens now, and keep how long it took."""
        self.narrator.say(story)
        started_s = time.monotonic()
        yield
        self.seconds[name] = round(time.monotonic() - started_s, 2)


def set_up_s() -> float | None:
    """Return how long this environment's installation took, where `make setup` did it."""
    try:
        return float((Path(sys.prefix) / ".ready").read_text())
    except (OSError, ValueError):
        return None
