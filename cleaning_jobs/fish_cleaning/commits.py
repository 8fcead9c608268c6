"""Publishing a unit: first the data, which nobody reads yet, then one record that makes it part of the output.

The record is created where none is, so of two workers that finish the same unit exactly one publishes; the other's shard
is left over and harmless. Only commit records define the output.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from fish_cleaning.clip import Cleaned, Reject
from fish_cleaning.plan import Unit
from fish_cleaning.shards import build_shard
from fish_cleaning.store import Store

_FOLDER: Final = "commits"


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """What became of each item of a unit. `shard` is empty when all of them were rejected."""

    unit: str
    config_hash: str
    shard: str
    shard_sha256: str
    committed: tuple[str, ...]
    rejected: Mapping[str, Mapping[str, str]]
    audio_s: float


def publish(store: Store, unit: Unit, results: Mapping[str, Cleaned | Reject], *, config_hash: str) -> bool:
    """Publish the results of a whole unit; False when another worker has published it already."""
    cleaned = {item: result for item, result in results.items() if isinstance(result, Cleaned)}
    rejected = {item: _described(result) for item, result in results.items() if isinstance(result, Reject)}
    key = sha256 = ""
    if cleaned:
        shard = build_shard(cleaned)
        sha256 = shard.sha256
        key = f"shards/{unit.id}.{sha256[:16]}.tar"
        store.keep(key, shard.tar)
        store.keep(key.removesuffix(".tar") + ".index.json", shard.index_json())
    commit = Commit(
        unit=unit.id,
        config_hash=config_hash,
        shard=key,
        shard_sha256=sha256,
        committed=tuple(sorted(cleaned)),
        rejected=rejected,
        audio_s=round(sum(result.duration_s for result in cleaned.values()), 3),
    )
    return store.create(f"{_FOLDER}/{unit.id}.json", json.dumps(asdict(commit)).encode())


def _described(reject: Reject) -> dict[str, str]:
    return {"reason": reject.reason.value, "detail": reject.detail}


class CommitLog:
    """All commits of an output. Records never change, so each is read once."""

    def __init__(self, store: Store, units: Sequence[Unit]) -> None:
        self._store = store
        self._planned = {unit.id for unit in units}
        self._published: set[str] = set()
        self.commits: dict[str, Commit] = {}

    def look(self) -> None:
        """Find out which units are published. A worker need not know more, and starts in any number of units at once."""
        self._published = self._planned.intersection(name.removesuffix(".json") for name in self._store.names(_FOLDER))

    def refresh(self) -> None:
        """Read the records that are new."""
        self.look()
        for unit in sorted(self._published - self.commits.keys()):
            record = self._store.get(f"{_FOLDER}/{unit}.json")
            if record is not None:
                self.commits[unit] = _commit(record)

    @property
    def units_total(self) -> int:
        """Count the units of the plan."""
        return len(self._planned)

    @property
    def units_published(self) -> int:
        """Count the units that had a commit at the last look."""
        return len(self._published)

    @property
    def open_units(self) -> list[str]:
        """Return the units that had no commit at the last look, in the same order for everybody."""
        return sorted(self._planned - self._published)


def _commit(record: bytes) -> Commit:
    raw = json.loads(record)
    return Commit(**(raw | {"committed": tuple(raw["committed"])}))
