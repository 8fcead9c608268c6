"""What an output does not need any more: shards of beaten workers, and the journals and leases of published units."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from fish_cleaning.commits import Commit, CommitLog
from fish_cleaning.errors import BadInput
from fish_cleaning.plan import read_plan
from fish_cleaning.store import Store, Written

_MARK_KEY: Final = "tidied"
_FOLDERS: Final = ("journals", "leases", "shards")
_STAGED: Final = ".tmp/"  # left by writers that died


@dataclass(frozen=True, slots=True, kw_only=True)
class Tidied:
    """What was deleted, or would be."""

    blobs: int
    size_bytes: int


def tidy(store: Store, *, older_than_s: float, is_rehearsal: bool) -> Tidied:
    """Delete leftovers that nobody has written to for that long; with `is_rehearsal`, only count them.

    What belongs to an open unit stays, however old: a worker that was frozen for days may still publish it. The age only spares
    workers that have not yet noticed that they were beaten. It is measured on the storage's own clock, by a mark written now.
    """
    plan = read_plan(store)
    if plan is None:
        raise BadInput("output: no plan.json in it; expected the output of a cleaning job")
    log = CommitLog(store, plan.units)
    log.refresh()
    store.replace(_MARK_KEY, b"")
    blobs = store.written()
    found = leftovers(blobs, log.commits, before_s=blobs[_MARK_KEY].at_s - older_than_s)
    if not is_rehearsal:
        store.delete(found)
    return Tidied(blobs=len(found), size_bytes=sum(blobs[key].size_bytes for key in found))


def leftovers(blobs: Mapping[str, Written], commits: Mapping[str, Commit], *, before_s: float) -> list[str]:
    """Return what may be deleted of these blobs, if last written before that."""
    shards = {commit.shard for commit in commits.values()}
    needed = shards | {_index_of(shard) for shard in shards}
    return [
        key
        for key, written in sorted(blobs.items())
        if written.at_s <= before_s and _is_leftover(key, needed=needed, published=commits.keys())
    ]


def _is_leftover(key: str, *, needed: Collection[str], published: Collection[str]) -> bool:
    if key.startswith(_STAGED):
        return True
    folder, _, name = key.partition("/")
    return folder in _FOLDERS and name.partition(".")[0] in published and key not in needed


def _index_of(shard: str) -> str:
    return shard.removesuffix(".tar") + ".index.json"
