"""Holding a worker to a speed, where its cores are wanted elsewhere."""


class Pace:
    """Says how long to wait after each item. Time that was spent idle is not made up for."""

    def __init__(self, *, max_speed: float | None) -> None:
        self._max_speed = max_speed
        self._free_at_s = 0.0

    def wait_s(self, audio_s: float, *, began_at_s: float, now_s: float) -> float:
        """Return how long to wait now, after an item of that much audio that was begun then."""
        if self._max_speed is None:
            return 0.0
        self._free_at_s = max(self._free_at_s, began_at_s) + audio_s / self._max_speed
        return max(0.0, self._free_at_s - now_s)
