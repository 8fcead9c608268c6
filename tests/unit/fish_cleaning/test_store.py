"""The local store: whole or not at all, first come first served, and clear words when it cannot write."""

import threading
from pathlib import Path

import pytest

from fish_cleaning.errors import BadInput
from fish_cleaning.store import LocalStore


def test_a_blob_comes_back_as_it_was_put(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.replace("a/b", b"one")
    store.replace("a/b", b"two")
    assert store.get("a/b") == b"two"
    assert store.get("a/c") is None
    assert store.names("a") == ["b"]
    assert store.names("nothing") == []


def test_of_many_creators_at_once_exactly_one_wins(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
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


def test_nothing_is_left_beside_the_blobs(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.create("a", b"")
    store.create("a", b"")
    store.replace("a", b"")
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["a"]


def test_what_is_appended_is_read_at_once(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    file = store.appendable("journals/unit.1")
    file.append(b"one")
    file.append(b"two")
    file.sync()
    assert store.get("journals/unit.1") == b"onetwo"
    file.close()


def test_an_output_that_is_no_folder_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    store = LocalStore(tmp_path / "file")
    with pytest.raises(BadInput, match=r"file/plan\.json: Not a directory; expected a folder"):
        store.create("plan.json", b"")
