"""When a failed pod is replaced. Pure.

The failed pod itself is the memory: it stays, logs and all, until its successor may start, and the successor carries the
count. So a restarted operator waits no less and no longer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fish_operator.view import PodView

FIRST_DELAY_S: Final = 10.0
MAX_DELAY_S: Final = 300.0
FORGIVEN_AFTER_S: Final = 600.0
"""A pod that ran this long failed for a new reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """What the failed pods of one owner mean for the next ones."""

    waiting: tuple[PodView, ...] = ()
    """Failed pods whose successor must not start yet; each blocks one place."""
    over: tuple[PodView, ...] = ()
    """Failed pods that have served their time and can be removed."""
    failures: int = 0
    """In a row, for the next pod to carry."""


def backoff(failed: Sequence[PodView], *, now_s: float) -> Backoff:
    """Sort failed pods into those that still hold their successor back and those that do not."""
    waiting = tuple(pod for pod in failed if now_s < retry_at_s(pod))
    over = tuple(pod for pod in failed if pod not in waiting)
    return Backoff(waiting=waiting, over=over, failures=max(map(failures_in_a_row, over), default=0))


def failures_in_a_row(pod: PodView) -> int:
    """Return how many pods in a row have failed, this one included."""
    assert pod.end is not None
    started_at_s = pod.started_at_s if pod.started_at_s is not None else pod.end.finished_at_s
    return 1 if pod.end.finished_at_s - started_at_s >= FORGIVEN_AFTER_S else pod.failures + 1


def retry_at_s(pod: PodView) -> float:
    """Return when the successor of a failed pod may start."""
    assert pod.end is not None
    delay_s = FIRST_DELAY_S * 2.0 ** min(failures_in_a_row(pod) - 1, 10)
    return pod.end.finished_at_s + min(delay_s, MAX_DELAY_S)
