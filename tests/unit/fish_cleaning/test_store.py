"""What every store promises, and the words of a folder that cannot be written.

The same promises are held against a real server: `FISH_TEST_STORE=s3://bucket/prefix` adds it to the list.
"""

import os
import secrets
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from fish_cleaning.errors import BadInput
from fish_cleaning.locations import open_store
from fish_cleaning.object_storage import Bucket
from fish_cleaning.s3_store import S3Store
from fish_cleaning.store import LocalStore, Store

SERVER = os.environ.get("FISH_TEST_STORE")


@pytest.fixture(params=["folder", "bucket", *(["server"] if SERVER else [])])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Return an empty store of each kind."""
    makers: dict[str, Callable[[], Store]] = {
        "folder": lambda: LocalStore(tmp_path),
        "bucket": lambda: S3Store(Bucket(MemoryStore(), uri="s3://memory")),
        "server": lambda: open_store(f"{SERVER}/{secrets.token_hex(4)}"),
    }
    return makers[request.param]()


def test_a_blob_comes_back_as_it_was_put(store: Store) -> None:
    store.replace("a/b", b"one")
    store.replace("a/b", b"two")
    assert store.get("a/b") == b"two"
    assert store.get("a/c") is None


def test_names_are_those_directly_below(store: Store) -> None:
    store.replace("a/c", b"")
    store.replace("a/b", b"")
    store.replace("a/d/e", b"")
    assert store.names("a") == ["b", "c", "d"]
    assert store.names("nothing") == []


def test_what_is_there_is_not_created_again(store: Store) -> None:
    assert store.create("a", b"one")
    assert not store.create("a", b"two")
    assert not store.create("a", b"one")
    assert store.get("a") == b"one"


def test_of_many_creators_at_once_exactly_one_wins(store: Store) -> None:
    won: list[bytes] = []
    start = threading.Barrier(16)

    def create(content: bytes) -> None:
        start.wait()
        if store.create("commits/unit.json", content):
            won.append(content)

    threads = [threading.Thread(target=create, args=(bytes([number]),)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [store.get("commits/unit.json")] == won


def test_a_blob_is_swapped_only_for_the_one_that_was_read(store: Store) -> None:
    assert not store.swap("manifest.json", b"two", expected=b"one")
    assert store.swap("manifest.json", b"one", expected=None)
    assert not store.swap("manifest.json", b"three", expected=None)
    assert not store.swap("manifest.json", b"three", expected=b"two")
    assert store.swap("manifest.json", b"two", expected=b"one")
    assert store.get("manifest.json") == b"two"


def test_of_many_that_swap_at_once_none_undoes_another(store: Store) -> None:
    """Each adds its letter to what it read, again until that is taken; in the end all of them are there."""
    letters = [bytes([97 + number]) for number in range(8)]
    start = threading.Barrier(len(letters))

    def add(letter: bytes) -> None:
        start.wait()
        while True:
            read = store.get("manifest.json")
            if store.swap("manifest.json", (read or b"") + letter, expected=read):
                return

    threads = [threading.Thread(target=add, args=(letter,)) for letter in letters]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(store.get("manifest.json") or b"") == sorted(b"".join(letters))


def test_what_is_named_by_its_content_may_be_put_by_many(store: Store) -> None:
    store.keep("shards/a.tar", b"content")
    store.keep("shards/a.tar", b"content")
    assert store.get("shards/a.tar") == b"content"


def test_what_was_appended_and_synced_is_read_at_once(store: Store) -> None:
    file = store.appendable("journals/unit.1")
    file.append(b"one")
    file.append(b"two")
    file.sync()
    file.sync()
    file.append(b"three")
    file.sync()
    assert store.appended("journals/unit.1") == b"onetwothree"
    assert store.appended("journals/unit.2") == b""
    assert store.names("journals") == ["unit.1"]
    file.close()


def test_many_appends_come_back_in_their_order(store: Store) -> None:
    file = store.appendable("journals/unit.1")
    for number in range(25):
        file.append(b"%d " % number)
        file.sync()
    assert store.appended("journals/unit.1").split() == [b"%d" % number for number in range(25)]
    file.close()


def test_deleted_blobs_are_gone_and_all_others_are_listed_with_their_size(store: Store) -> None:
    for key in ("plan.json", "shards/a.tar", "shards/b.tar"):
        store.create(key, key.encode())
    before = store.written()
    store.delete(["shards/a.tar", "shards/none.tar"])
    assert {key: blob.size_bytes for key, blob in store.written().items()} == {"plan.json": 9, "shards/b.tar": 12}
    assert before["plan.json"].at_s <= before["shards/b.tar"].at_s


def test_leaving_still_makes_durable_what_can_be_at_once(store: Store) -> None:
    file = store.appendable("journals/unit.1")
    file.append(b"one")
    store.hasten()
    file.sync()
    assert store.appended("journals/unit.1") == b"one"
    file.close()


def test_nothing_is_left_beside_the_blobs(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.create("a", b"")
    store.create("a", b"")
    store.replace("a", b"")
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["a"]


def test_an_output_that_is_no_folder_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    store = LocalStore(tmp_path / "file")
    with pytest.raises(BadInput, match=r"file/plan\.json: Not a directory; expected a folder"):
        store.create("plan.json", b"")
