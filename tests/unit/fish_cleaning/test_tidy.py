"""Tidying an output takes what nobody needs and leaves what it consists of."""

from collections.abc import Callable
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from fish_cleaning.clip import Cleaned, Item, Reason, Reject
from fish_cleaning.commits import publish
from fish_cleaning.errors import BadInput
from fish_cleaning.object_storage import Bucket
from fish_cleaning.plan import Unit, make_plan, to_json
from fish_cleaning.recipe import Recipe, UnitLimits
from fish_cleaning.s3_store import S3Store
from fish_cleaning.store import LocalStore, Store
from fish_cleaning.tidy import Tidied, tidy

RECIPE = Recipe(name="quick", units=UnitLimits(max_items=1))
CLEANED = Cleaned(metadata_json="{}", flac=b"sound", duration_s=1.0)


@pytest.fixture(params=["folder", "bucket"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Return an empty store of each kind."""
    makers: dict[str, Callable[[], Store]] = {
        "folder": lambda: LocalStore(tmp_path),
        "bucket": lambda: S3Store(Bucket(MemoryStore(), uri="s3://memory")),
    }
    return makers[request.param]()


@pytest.fixture
def units(store: Store) -> tuple[Unit, ...]:
    """Return the two units of a job, of which one is published and one is not; both have a lease and a journal."""
    items = [Item(id=number * 20, name=number, content="", size_bytes=1) for number in "ab"]
    plan = make_plan(items, input_uri="file:///in", recipe=RECIPE)
    store.create("plan.json", to_json(plan))
    for unit in plan.units:
        store.create(f"leases/{unit.id}.1", b"{}")
        file = store.appendable(f"journals/{unit.id}.1")
        file.append(b"entries")
        file.sync()
        file.close()
    first = plan.units[0]
    publish(store, first, {first.items[0].id: CLEANED}, config_hash="c")
    store.keep(f"shards/{first.id}.beaten.tar", b"another")
    store.keep(f"shards/{plan.units[1].id}.about-to-be-published.tar", b"one")
    return plan.units


def test_leftovers_are_deleted_and_nothing_else(store: Store, units: tuple[Unit, ...]) -> None:
    published, is_open = units
    before = set(store.written())
    tidied = tidy(store, older_than_s=0.0, is_rehearsal=False)
    gone = before - set(store.written())
    assert {key.partition("/")[0] for key in gone} == {"leases", "journals", "shards"}
    assert all(key.partition("/")[2].startswith(published.id) for key in gone)
    assert f"shards/{published.id}.beaten.tar" in gone
    assert len(gone) == tidied.blobs == 3
    assert store.appended(f"journals/{is_open.id}.1") == b"entries"
    assert len(store.names("shards")) == 3  # that of the commit with its index, and that of the open unit


def test_what_is_young_is_spared(store: Store, units: tuple[Unit, ...]) -> None:
    assert tidy(store, older_than_s=3600.0, is_rehearsal=False) == Tidied(blobs=0, size_bytes=0)
    assert store.get(f"shards/{units[0].id}.beaten.tar") == b"another"


def test_a_rehearsal_deletes_nothing(store: Store, units: tuple[Unit, ...]) -> None:
    assert tidy(store, older_than_s=0.0, is_rehearsal=True).blobs == 3
    assert store.get(f"leases/{units[0].id}.1") == b"{}"


def test_a_folder_that_is_no_output_is_left_alone(store: Store) -> None:
    store.replace("shards/precious.tar", b"")
    with pytest.raises(BadInput, match=r"no plan\.json in it"):
        tidy(store, older_than_s=0.0, is_rehearsal=False)


def test_a_unit_without_a_shard_needs_none(store: Store, units: tuple[Unit, ...]) -> None:
    second = units[1]
    publish(store, second, {second.items[0].id: Reject(reason=Reason.EMPTY, detail="")}, config_hash="c")
    assert tidy(store, older_than_s=0.0, is_rehearsal=True).blobs == 6
