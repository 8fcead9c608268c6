"""What one worker counts about itself while it runs: written by its loop, read by the status server and the summary."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True, kw_only=True)
class Tally:
    """Plain counts without locks: a reader may see one item more in one of them than in another."""

    items: Counter[str] = field(default_factory=Counter)
    """Items finished, by outcome: `committed` for those that passed, else the reason of the rejection."""
    audio_s: float = 0.0
    items_redone: int = 0
    """Items whose earlier attempt was cut off, here or in another worker."""
    units_published: int = 0
    leases_taken_over: int = 0
    leases_lost: int = 0
    at_risk_since_s: float | None = None
    """When the oldest work began that is not durable yet."""

    def work_at_risk_s(self, *, now_s: float) -> float:
        """Return how much work a power cut now would throw away."""
        since_s = self.at_risk_since_s
        return 0.0 if since_s is None else max(0.0, now_s - since_s)
