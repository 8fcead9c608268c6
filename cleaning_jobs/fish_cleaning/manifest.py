"""The manifest: all commits of an output in one object, for readers who want the list of shards and no thousand records.

It says nothing that the commit records do not. It only grows: a worker swaps it for a larger one over the very version
that it has read, so of workers that publish at once none takes back what another one has added.
"""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Final

from fish_cleaning.commits import Commit, CommitLog
from fish_cleaning.store import Store

MANIFEST_KEY: Final = "manifest.json"
_FORMAT: Final = 1


def to_json(commits: Mapping[str, Commit], *, units_total: int) -> bytes:
    """Write the manifest of these commits: the same commits give the same bytes."""
    ordered = [commits[unit] for unit in sorted(commits)]
    shards = [
        {"path": one.shard, "sha256": one.shard_sha256, "items": len(one.committed), "audio_s": one.audio_s}
        for one in ordered
        if one.shard
    ]
    rejects = Counter(reject["reason"] for one in ordered for reject in one.rejected.values())
    document = {
        "format": _FORMAT,
        "units_total": units_total,
        "units_committed": len(ordered),
        "items_committed": sum(len(one.committed) for one in ordered),
        "audio_s": round(sum(one.audio_s for one in ordered), 3),
        "rejects": dict(sorted(rejects.items())),
        "shards": shards,
    }
    return json.dumps(document, indent=1).encode()


def publish_manifest(store: Store, log: CommitLog) -> bool:
    """Bring the manifest up to the commits of now; False when another worker is at it, and asking again may help."""
    current = store.get(MANIFEST_KEY)
    if current is not None and _units_committed(current) >= log.units_published:
        return True
    log.refresh()
    return store.swap(MANIFEST_KEY, to_json(log.commits, units_total=log.units_total), expected=current)


def is_current(store: Store, log: CommitLog) -> bool:
    """Tell whether the manifest lists the commits of this log and nothing else."""
    return store.get(MANIFEST_KEY) == to_json(log.commits, units_total=log.units_total)


def _units_committed(manifest: bytes) -> int:
    count = json.loads(manifest)["units_committed"]
    assert isinstance(count, int)
    return count
