"""Pods whose end only a watch saw: a node deletes an evicted pod right after it has ended, often between two looks.

Losing this, by a crash, loses a count and nothing else.
"""

from collections.abc import Iterable

from fish_operator.view import PodView


class Departures:
    """Ended pods, kept until they were accounted for."""

    def __init__(self) -> None:
        self._ended: dict[str, PodView] = {}

    def add(self, pod: PodView) -> None:
        """Remember an ended pod."""
        self._ended[pod.uid] = pod

    def beyond(self, listed: Iterable[str]) -> tuple[PodView, ...]:
        """Return the ended pods that are not listed any more."""
        known = frozenset(listed)
        return tuple(pod for uid, pod in self._ended.items() if uid not in known)

    def forget(self, pods: Iterable[PodView]) -> None:
        """Drop pods that were accounted for."""
        for pod in pods:
            self._ended.pop(pod.uid, None)
