"""Who works on which unit.

Leases only save work: two workers on one unit cost time and nothing else, because results are published by one commit.
A lease is the blob `leases/<unit>.<epoch>`. Its holder rewrites it with a growing count; whoever sees it unchanged for the
time to live, on its own clock, takes the unit over by creating the next epoch. No clock of another machine is ever read.
"""

import json
import threading
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fish_cleaning.errors import CleaningError
from fish_cleaning.store import Store

_FOLDER: Final = "leases"
_BEATS_PER_TTL: Final = 5
_MIN_BEAT_INTERVAL_S: Final = 0.02  # a beat is a write


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSeen:
    """The newest lease of a unit, as it lies in the store."""

    epoch: int
    content: bytes

    @property
    def is_released(self) -> bool:
        """Tell whether its holder gave it back. A beat that a power cut garbled did not."""
        try:
            return bool(json.loads(self.content)["is_released"])
        except (ValueError, TypeError, KeyError):
            return False


def read_leases(store: Store, units: Sequence[str]) -> dict[str, LeaseSeen]:
    """Return the newest lease of each of these units that has one."""
    wanted = set(units)
    newest: dict[str, int] = {}
    for name in store.names(_FOLDER):
        unit, _, number = name.rpartition(".")
        if unit in wanted:
            newest[unit] = max(int(number), newest.get(unit, 0))
    seen = {}
    for unit, epoch in newest.items():
        content = store.get(_key(unit, epoch))
        if content is not None:
            seen[unit] = LeaseSeen(epoch=epoch, content=content)
    return seen


class LeaseWatch:
    """Remembers since when each lease has looked the same, by the watcher's clock."""

    def __init__(self, *, ttl_s: float) -> None:
        self._ttl_s = ttl_s
        self._since: dict[str, tuple[LeaseSeen, float]] = {}

    def observe(self, leases: Mapping[str, LeaseSeen], *, now_s: float) -> None:
        """Take note of how the leases look now."""
        for unit, lease in leases.items():
            known = self._since.get(unit)
            if known is None or known[0] != lease:
                self._since[unit] = (lease, now_s)
        for gone in self._since.keys() - leases.keys():
            del self._since[gone]

    def next_epochs(self, units: Sequence[str], *, now_s: float) -> dict[str, int]:
        """Return the units that nobody works on, each with the epoch under which it may be taken."""
        takeable = {}
        for unit in units:
            known = self._since.get(unit)
            if known is None:
                takeable[unit] = 1
                continue
            lease, since_s = known
            if lease.is_released or now_s - since_s >= self._ttl_s:
                takeable[unit] = lease.epoch + 1
        return takeable


class Lease:
    """The right to work on a unit, kept alive by a thread of its own so that a long item does not lose it."""

    def __init__(self, store: Store, *, unit: str, epoch: int, holder: str, ttl_s: float) -> None:
        self.unit, self.epoch = unit, epoch
        self._store, self._holder = store, holder
        self._interval_s = max(_MIN_BEAT_INTERVAL_S, ttl_s / _BEATS_PER_TTL)
        self._is_over = threading.Event()
        self._is_lost = False

    def take(self) -> bool:
        """Create the lease and keep it alive; False when another worker was faster.

        The epoch must outlive a power cut, or the next worker would find its own journal written already. Beats need not.
        """
        if not self._store.create(_key(self.unit, self.epoch), self._content(beat=0)):
            return False
        threading.Thread(target=self._keep_alive, name=f"lease-{self.unit}", daemon=True).start()
        return True

    @property
    def is_lost(self) -> bool:
        """Tell whether another worker took the unit over: going on would be work done twice."""
        return self._is_lost

    def end(self) -> None:
        """Stop keeping the lease alive; its unit is committed or given up."""
        self._is_over.set()

    def release(self) -> None:
        """Give the unit back at once, so that the next worker need not wait for the time to live."""
        self._is_over.set()
        content = self._content(beat=0, is_released=True)
        self._store.replace(_key(self.unit, self.epoch), content)

    def _keep_alive(self) -> None:
        beat = 0
        while not self._is_over.wait(self._interval_s):
            beat += 1
            try:
                if self._store.get(_key(self.unit, self.epoch + 1)) is not None:
                    self._is_lost = True
                    return
                self._store.replace(_key(self.unit, self.epoch), self._content(beat=beat))
            except CleaningError:
                continue  # a missed beat costs at most work done twice; the worker itself meets the error soon

    def _content(self, *, beat: int, is_released: bool = False) -> bytes:
        return json.dumps({"holder": self._holder, "beat": beat, "is_released": is_released}).encode()


def choose(takeable: Mapping[str, int], *, seed: str) -> tuple[str, int] | None:
    """Pick a unit that may be taken. Workers with different seeds prefer different units and rarely collide."""
    if not takeable:
        return None
    unit = min(takeable, key=lambda unit: zlib.crc32(f"{seed} {unit}".encode()))
    return unit, takeable[unit]


def _key(unit: str, epoch: int) -> str:
    return f"{_FOLDER}/{unit}.{epoch}"
