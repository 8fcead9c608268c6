"""Checks an output against its input, reading everything again and trusting nothing that a worker counted."""

import hashlib
import io
import json
import tarfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from fish_cleaning.commits import Commit, CommitLog
from fish_cleaning.errors import BadInput
from fish_cleaning.journal import JOURNALS, Attempted, entries_of
from fish_cleaning.manifest import MANIFEST_KEY, is_current
from fish_cleaning.plan import Plan, read_plan
from fish_cleaning.source import Source
from fish_cleaning.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was found. `items_unplanned` are recordings that came or changed after the plan was made."""

    units_total: int
    units_committed: int
    items_expected: int
    items_committed: int
    items_rejected: int
    items_lost: int
    items_doubled: int
    items_unplanned: int
    bad_checksums: int
    work_redone_ratio: float
    manifest_is_current: bool
    audio_s: float
    rejects: dict[str, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def is_good(self) -> bool:
        """Tell whether each recording of the input is in the output exactly once, intact or rejected with a reason."""
        faults = self.items_lost + self.items_doubled + self.items_unplanned + self.bad_checksums
        return faults == 0 and self.units_committed == self.units_total and self.manifest_is_current


def verify(source: Source, store: Store) -> Verdict:
    """Compare the output in `store` with the input that it was made from."""
    plan = _plan_of(source, store)
    log = CommitLog(store, plan.units)
    log.refresh()
    commits = list(log.commits.values())
    shards = [check_shard(store, commit) for commit in commits if commit.shard]
    outcomes = Counter(item for shard in shards for item in shard.items)
    outcomes.update(item for commit in commits for item in commit.rejected)
    planned = {item.id for unit in plan.units for item in unit.items}
    unplanned = {item.id for item in source.items()} - planned
    lost = planned - outcomes.keys()
    problems = [problem for shard in shards for problem in shard.problems]
    problems += [f"unit {unit} is not committed" for unit in log.open_units]
    manifest_is_current = is_current(store, log)
    if not manifest_is_current:
        problems.append(f"{MANIFEST_KEY} does not list the commits")
    problems += [f"item {item} has no outcome" for item in sorted(lost)]
    problems += [f"item {item} is not in the plan" for item in sorted(unplanned)]
    return Verdict(
        units_total=len(plan.units),
        units_committed=len(commits),
        items_expected=plan.items_total,
        items_committed=sum(len(shard.items) for shard in shards),
        items_rejected=sum(len(commit.rejected) for commit in commits),
        items_lost=len(lost),
        items_doubled=sum(count > 1 for count in outcomes.values()) + len(outcomes.keys() - planned),
        items_unplanned=len(unplanned),
        bad_checksums=sum(len(shard.problems) for shard in shards),
        manifest_is_current=manifest_is_current,
        work_redone_ratio=round(_redone_items(store) / plan.items_total, 5),
        audio_s=round(sum(commit.audio_s for commit in commits), 3),
        rejects=_reasons(commits),
        problems=tuple(problems[:20]),
    )


def _plan_of(source: Source, store: Store) -> Plan:
    plan = read_plan(store)
    if plan is None:
        raise BadInput("output: no plan.json in it; expected the output folder of a cleaning job")
    if plan.input_uri != source.uri:
        raise BadInput(f"output was written from input {plan.input_uri}, not from {source.uri}")
    return plan


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedShard:
    """Items whose sound and metadata lie intact in a shard, one entry each time they do, and what was wrong."""

    items: tuple[str, ...]
    problems: tuple[str, ...]


def check_shard(store: Store, commit: Commit) -> CheckedShard:
    """Read a shard as anybody would and compare it with its commit and its index."""
    content = store.get(commit.shard)
    if content is None:
        return CheckedShard(items=(), problems=(f"{commit.shard} is missing",))
    if hashlib.sha256(content).hexdigest() != commit.shard_sha256:
        return CheckedShard(items=(), problems=(f"{commit.shard} does not have the sha256 {commit.shard_sha256}",))
    index = json.loads(store.get(commit.shard.removesuffix(".tar") + ".index.json") or b'{"members": {}}')
    files: list[tuple[str, bytes]] = []
    problems: list[str] = []
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        for member in tar:
            offset, size = index["members"].get(member.name, (0, 0))
            data = content[member.offset_data : member.offset_data + member.size]
            files.append((member.name, data))
            if content[offset : offset + size] != data:
                problems.append(f"{commit.shard}: the index points past {member.name}")
    metadata = {name.removesuffix(".json"): json.loads(data) for name, data in files if name.endswith(".json")}
    items = [name.removesuffix(".flac") for name, _ in files if name.endswith(".flac")]
    for name, data in files:
        item = name.removesuffix(".flac")
        if name.endswith(".flac") and metadata[item]["audio_sha256"] != hashlib.sha256(data).hexdigest():
            problems.append(f"{commit.shard}: {name} does not have the sha256 of its metadata")
    if set(items) != set(commit.committed):
        problems.append(f"{commit.shard} does not hold the items of its commit")
    return CheckedShard(items=tuple(items), problems=tuple(problems))


def _redone_items(store: Store) -> int:
    """Count the attempts on items beyond the first, over all journals."""
    attempts: Counter[str] = Counter()
    for name in store.names(JOURNALS):
        journal = store.appended(f"{JOURNALS}/{name}")
        attempts.update(entry.item_id for entry in entries_of(journal) if isinstance(entry, Attempted))
    return attempts.total() - len(attempts)


def _reasons(commits: Iterable[Commit]) -> dict[str, int]:
    reasons = Counter(reject["reason"] for commit in commits for reject in commit.rejected.values())
    return dict(sorted(reasons.items()))
