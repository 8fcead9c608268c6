"""The worker: take a unit, clean its items, publish it, until every unit of the plan is published.

choose a unit ── none free? wait ── all published? done
    │ lease
    ▼
replay older journals ──► for each item left: attempt → clean → result into the journal
    │                         ▲ stop request or lost lease: leave between items
    ▼
publish: shard, then commit record; now and then, and at the end, the manifest
"""

import os
import secrets
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from fish_cleaning.clip import Cleaned, Item, Reason, Reject
from fish_cleaning.commits import CommitLog, publish
from fish_cleaning.events import log_event
from fish_cleaning.isolation import clean_isolated
from fish_cleaning.journal import Attempted, Finished, JournalWriter, history_of, journal_key
from fish_cleaning.leases import Lease, LeaseWatch, choose, read_leases
from fish_cleaning.manifest import publish_manifest
from fish_cleaning.pace import Pace
from fish_cleaning.plan import Plan, Unit
from fish_cleaning.recipe import Recipe
from fish_cleaning.source import Source
from fish_cleaning.steps.chain import clean
from fish_cleaning.stopping import StopRequest
from fish_cleaning.store import Store
from fish_cleaning.tally import Tally

_IDLE_POLL_S: Final = 0.25
_MANIFEST_INTERVAL_S: Final = 60.0
_BROKEN_ATTEMPTS_TO_ISOLATE: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Everything that a worker is given."""

    plan: Plan
    recipe: Recipe
    source: Source
    store: Store
    lease_ttl_s: float


class Worker:
    """One worker of a job; several may share the output without knowing each other."""

    def __init__(self, job: Job, *, stop: StopRequest, tally: Tally) -> None:
        self._job, self._stop, self._tally = job, stop, tally
        self._units = {unit.id: unit for unit in job.plan.units}
        self._commits = CommitLog(job.store, job.plan.units)
        self._watch = LeaseWatch(ttl_s=job.lease_ttl_s)
        self._pace = Pace(max_speed=job.recipe.max_speed)
        self._name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._listed_at_s = time.monotonic()
        self._lease: Lease | None = None
        self._journal: JournalWriter | None = None

    def run(self) -> bool:
        """Work until all units are published, by whomever, or until asked to stop. Return whether all are published."""
        while not self._stop.is_requested:
            self._commits.look()
            is_done = not self._commits.open_units
            if is_done and publish_manifest(self._job.store, self._commits):
                return True
            lease = None if is_done else self._take_lease()
            if lease is None:
                self._stop.wait(_IDLE_POLL_S)
            else:
                self._clean_unit(self._units[lease.unit], lease)
        return False

    def secure(self) -> None:
        """Make finished work durable and give the unit back. Takes a moment at most, and may interrupt an item."""
        self._job.store.hasten()
        if self._journal is not None:
            self._journal.sync(now_s=time.monotonic())
        if self._lease is not None:
            self._lease.release()

    def _take_lease(self) -> Lease | None:
        open_units = self._commits.open_units
        now_s = time.monotonic()
        self._watch.observe(read_leases(self._job.store, open_units), now_s=now_s)
        choice = choose(self._watch.next_epochs(open_units, now_s=now_s), seed=self._name)
        if choice is None:
            return None
        unit, epoch = choice
        lease = Lease(self._job.store, unit=unit, epoch=epoch, holder=self._name, ttl_s=self._job.lease_ttl_s)
        if not lease.take():
            return None
        self._tally.leases_taken_over += epoch > 1
        return lease

    def _clean_unit(self, unit: Unit, lease: Lease) -> None:
        """Clean what earlier epochs left of a unit and publish it; on a stop request leave it open for `secure`."""
        self._lease = lease
        history = history_of(self._earlier_journals(lease))
        file = self._job.store.appendable(journal_key(lease.unit, lease.epoch))
        self._journal = journal = JournalWriter(file, now_s=time.monotonic())
        results = dict(history.results)
        for item in unit.items:
            if item.id in results:
                continue
            if self._stop.is_requested:
                return
            if lease.is_lost:
                self._tally.leases_lost += 1
                log_event("lease lost", unit=unit.id, epoch=lease.epoch)
                break
            results[item.id] = self._clean_item(item, journal, history.broken_attempts.get(item.id, 0))
        else:
            self._publish(unit, results)
        # First forgotten, then closed: `secure` may come in between.
        self._lease = self._journal = self._tally.at_risk_since_s = None
        lease.end()
        journal.close()

    def _clean_item(self, item: Item, journal: JournalWriter, broken_attempts: int) -> Cleaned | Reject:
        """Clean one item between two entries in the journal."""
        began_at_s = time.monotonic()
        journal.append(Attempted(item_id=item.id), now_s=began_at_s)
        if self._tally.at_risk_since_s is None or journal.is_synced:
            self._tally.at_risk_since_s = began_at_s
        result = self._result(item, is_suspect=broken_attempts >= _BROKEN_ATTEMPTS_TO_ISOLATE)
        journal.append(Finished(item_id=item.id, result=result), now_s=time.monotonic())
        self._tally.items_redone += broken_attempts > 0
        self._tally.items["committed" if isinstance(result, Cleaned) else result.reason.value] += 1
        self._tally.audio_s += result.duration_s
        self._rest(journal, result.duration_s, began_at_s)
        return result

    def _result(self, item: Item, *, is_suspect: bool) -> Cleaned | Reject:
        recording = self._job.source.read(item)
        if isinstance(recording, Reject):
            return recording
        if is_suspect:
            return clean_isolated(item, recording, self._job.recipe.steps)
        try:
            return clean(item, recording, self._job.recipe.steps)
        except Exception as error:  # whatever a decoder or a model raises costs this one item
            log_event("item failed", item=item.id, error=type(error).__name__)
            return Reject(reason=Reason.FAILED, detail=f"{type(error).__name__}: {error}")

    def _rest(self, journal: JournalWriter, audio_s: float, began_at_s: float) -> None:
        """Wait if the worker is ahead of its pace, with nothing at risk meanwhile."""
        wait_s = self._pace.wait_s(audio_s, began_at_s=began_at_s, now_s=time.monotonic())
        if wait_s > 0 and not journal.is_synced:
            journal.sync(now_s=time.monotonic())
        if journal.is_synced:
            self._tally.at_risk_since_s = None
        if wait_s > 0:
            self._stop.wait(wait_s)

    def _publish(self, unit: Unit, results: Mapping[str, Cleaned | Reject]) -> None:
        self._tally.units_published += publish(self._job.store, unit, results, config_hash=self._job.plan.config_hash)
        if time.monotonic() - self._listed_at_s >= _MANIFEST_INTERVAL_S:
            publish_manifest(self._job.store, self._commits)
            self._listed_at_s = time.monotonic()

    def _earlier_journals(self, lease: Lease) -> Iterator[bytes]:
        for epoch in range(1, lease.epoch):
            yield self._job.store.appended(journal_key(lease.unit, epoch))
