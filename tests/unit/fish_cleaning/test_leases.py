"""Leases on a clock that the test turns."""

import json
from pathlib import Path

from fish_cleaning.leases import Lease, LeaseSeen, LeaseWatch, choose, read_leases
from fish_cleaning.store import LocalStore

TTL_S = 15.0


def seen(*, epoch: int = 1, beat: int = 0, is_released: bool = False) -> LeaseSeen:
    content = {"holder": "somebody", "beat": beat, "is_released": is_released}
    return LeaseSeen(epoch=epoch, content=json.dumps(content).encode())


def lease(store: LocalStore, *, epoch: int, holder: str = "me", ttl_s: float = TTL_S) -> Lease:
    return Lease(store, unit="unit", epoch=epoch, holder=holder, ttl_s=ttl_s)


def test_a_unit_without_a_lease_may_be_taken() -> None:
    assert LeaseWatch(ttl_s=TTL_S).next_epochs(["unit"], now_s=0.0) == {"unit": 1}


def test_a_lease_that_stands_still_for_its_time_to_live_may_be_taken_over() -> None:
    watch = LeaseWatch(ttl_s=TTL_S)
    watch.observe({"unit": seen(epoch=3)}, now_s=100.0)
    watch.observe({"unit": seen(epoch=3)}, now_s=114.9)
    assert watch.next_epochs(["unit"], now_s=114.9) == {}
    watch.observe({"unit": seen(epoch=3)}, now_s=115.0)
    assert watch.next_epochs(["unit"], now_s=115.0) == {"unit": 4}


def test_a_beat_starts_the_time_anew_on_the_watchers_clock() -> None:
    watch = LeaseWatch(ttl_s=TTL_S)
    watch.observe({"unit": seen(beat=1)}, now_s=100.0)
    watch.observe({"unit": seen(beat=2)}, now_s=114.0)
    assert watch.next_epochs(["unit"], now_s=128.0) == {}
    assert watch.next_epochs(["unit"], now_s=129.0) == {"unit": 2}


def test_a_released_lease_may_be_taken_over_at_once() -> None:
    watch = LeaseWatch(ttl_s=TTL_S)
    watch.observe({"unit": seen(is_released=True)}, now_s=0.0)
    assert watch.next_epochs(["unit"], now_s=0.0) == {"unit": 2}


def test_of_two_workers_one_gets_the_lease(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    first, second = lease(store, epoch=1, holder="first"), lease(store, epoch=1, holder="second")
    assert [first.take(), second.take()] == [True, False]
    first.end()


def test_the_newest_epoch_is_the_one_that_counts(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    for epoch in (2, 10):
        taken = lease(store, epoch=epoch)
        assert taken.take()
        taken.end()
    assert read_leases(store, ["unit", "another"])["unit"].epoch == 10


def test_releasing_is_seen_by_others(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    held = lease(store, epoch=1)
    assert held.take()
    assert not read_leases(store, ["unit"])["unit"].is_released
    held.release()
    assert read_leases(store, ["unit"])["unit"].is_released


def test_a_lease_that_a_power_cut_garbled_is_waited_for_like_any_other(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.replace("leases/unit.3", b"")
    watch = LeaseWatch(ttl_s=TTL_S)
    for now_s in (0.0, TTL_S):
        watch.observe(read_leases(store, ["unit"]), now_s=now_s)
    assert watch.next_epochs(["unit"], now_s=1.0) == {}
    assert watch.next_epochs(["unit"], now_s=TTL_S) == {"unit": 4}


def test_workers_prefer_different_units() -> None:
    takeable = {f"unit-{number}": 1 for number in range(100)}
    chosen = {choose(takeable, seed=f"worker-{number}") for number in range(10)}
    assert len(chosen) >= 8
    assert choose({}, seed="worker") is None
