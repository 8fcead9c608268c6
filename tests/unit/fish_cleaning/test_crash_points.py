"""A worker dies before, in the middle of and after each of its writes; the next one finishes the job and nothing shows."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import count
from pathlib import Path
from typing import Literal

import pytest
from obstore.store import MemoryStore

from fish_cleaning.clip import Cleaned, Item, Reason, Reject
from fish_cleaning.object_storage import Bucket
from fish_cleaning.plan import ensure_plan
from fish_cleaning.recipe import Recipe, UnitLimits
from fish_cleaning.run import Job, Worker
from fish_cleaning.s3_store import S3Store
from fish_cleaning.source import AudioFolder
from fish_cleaning.steps.chain import StepConfigs
from fish_cleaning.stopping import StopRequest
from fish_cleaning.store import AppendOnly, LocalStore, Store, Written
from fish_cleaning.tally import Tally
from fish_cleaning.verify import verify

Manner = Literal["before", "torn", "after", "power cut"]
RECIPE = Recipe(name="quick", units=UnitLimits(max_items=3))


class Killed(BaseException):
    """Stands for SIGKILL: nothing in the worker catches it."""


class MortalStore:
    """Kills its worker at a chosen write to the store behind it."""

    def __init__(self, behind: Store, *, dies_at: int, manner: Manner) -> None:
        self._behind, self.dies_at, self.manner = behind, dies_at, manner
        self.writes = 0
        self.files: list[MortalFile] = []

    @property
    def is_dead(self) -> bool:
        """Tell whether the worker died."""
        return self.writes >= self.dies_at

    @contextmanager
    def write(self) -> Iterator[None]:
        """Come to a write, and die before or after it if this is the one."""
        self.writes += 1
        if self.writes == self.dies_at and self.manner == "before":
            raise Killed
        yield
        if self.writes == self.dies_at:
            for file in self.files:
                file.lose_what_was_not_synced()
            raise Killed

    def get(self, key: str) -> bytes | None:
        """Return a blob; to a heartbeat that outlives its worker everything looks taken, so that it ends."""
        return b"" if self.is_dead else self._behind.get(key)

    def names(self, folder: str) -> list[str]:
        """Return what is in a folder."""
        return self._behind.names(folder)

    def create(self, key: str, data: bytes) -> bool:
        """Put a blob where none is."""
        with self.write():
            return self._behind.create(key, data)

    def keep(self, key: str, data: bytes) -> None:
        """Put a blob that is named by its content."""
        with self.write():
            self._behind.keep(key, data)

    def swap(self, key: str, data: bytes, *, expected: bytes | None) -> bool:
        """Put a blob in place of another one."""
        with self.write():
            return self._behind.swap(key, data, expected=expected)

    def replace(self, key: str, data: bytes) -> None:
        """Put a blob; only heartbeats do, at no chosen time."""
        self._behind.replace(key, data)

    def appendable(self, key: str) -> AppendOnly:
        """Open a new file."""
        path = self._behind.root / key if isinstance(self._behind, LocalStore) else None
        self.files.append(MortalFile(self, path, self._behind.appendable(key)))
        return self.files[-1]

    def appended(self, key: str) -> bytes:
        """Return what was appended to a file."""
        return self._behind.appended(key)

    def written(self) -> dict[str, Written]:
        """Return all blobs."""
        return self._behind.written()

    def delete(self, keys: Iterable[str]) -> None:
        """Delete blobs."""
        self._behind.delete(keys)

    def hasten(self) -> None:
        """Hurry."""
        self._behind.hasten()


class MortalFile:
    """Dies at its appends where they reach beyond the process, else at its syncs. After a power cut, only what was synced is left."""

    def __init__(self, store: MortalStore, path: Path | None, file: AppendOnly) -> None:
        self._store, self._path, self._file = store, path, file
        self.outlives_writer = file.outlives_writer
        self._synced_bytes = 0

    def append(self, data: bytes) -> None:
        if not self.outlives_writer:
            self._file.append(data)
            return
        with self._store.write():
            is_torn = self._store.is_dead and self._store.manner == "torn"
            self._file.append(data[: len(data) // 2] if is_torn else data)

    def sync(self) -> None:
        with nullcontext() if self.outlives_writer else self._store.write():
            self._file.sync()
        if self._path is not None:
            self._synced_bytes = self._path.stat().st_size

    def close(self) -> None:
        self._file.close()

    def lose_what_was_not_synced(self) -> None:
        if self._store.manner == "power cut" and self._path is not None:
            with self._path.open("r+b") as file:
                file.truncate(self._synced_bytes)


def instant_clean(item: Item, recording: bytes, _: StepConfigs) -> Cleaned | Reject:
    """Stand in for the steps, which have tests of their own and take time."""
    if recording == b"bad":
        return Reject(reason=Reason.NOT_AUDIO, detail="bad")
    metadata = f'{{"audio_sha256": "{hashlib.sha256(recording).hexdigest()}"}}'
    return Cleaned(metadata_json=metadata, flac=recording, duration_s=1.0)


@pytest.fixture(autouse=True)
def _instant_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fish_cleaning.run.clean", instant_clean)


@pytest.fixture
def source(tmp_path: Path) -> AudioFolder:
    """Return six recordings, two of them bad."""
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(6):
        (folder / f"{number}.wav").write_bytes(b"bad" if number < 2 else b"sound %d" % number)
    return AudioFolder(folder)


def folder_store(root: Path) -> Store:
    return LocalStore(root)


def bucket_store(_: Path) -> Store:
    return S3Store(Bucket(MemoryStore(), uri="s3://memory"))


def work(store: Store, source: AudioFolder) -> Tally:
    """Run a worker to the end; with no time to live, it takes over whatever another one holds."""
    tally = Tally()
    plan = ensure_plan(store, source, RECIPE)
    job = Job(plan=plan, recipe=RECIPE, source=source, store=store, lease_ttl_s=0.0)
    assert Worker(job, stop=StopRequest(), tally=tally).run()
    return tally


@pytest.mark.parametrize(
    ("new_store", "manner"),
    [
        (folder_store, "before"),
        (folder_store, "torn"),
        (folder_store, "after"),
        (folder_store, "power cut"),
        (bucket_store, "before"),
        (bucket_store, "after"),
    ],
)
def test_dying_at_any_write_loses_and_doubles_nothing(
    tmp_path: Path, source: AudioFolder, new_store: Callable[[Path], Store], manner: Manner
) -> None:
    for dies_at in count(1):
        store = new_store(tmp_path / f"out-{dies_at}")
        try:
            work(MortalStore(store, dies_at=dies_at, manner=manner), source)
        except Killed:
            work(store, source)
        else:
            break  # it came to its end before that many writes
        verdict = verify(source, store)
        assert verdict.problems == (), f"died at write {dies_at}"
        assert (verdict.items_committed, verdict.items_rejected, verdict.items_doubled) == (4, 2, 0)
    assert dies_at > 14  # the plan; of two units lease, attempts, shard, index and commit


@pytest.mark.parametrize(
    ("new_store", "manner"),
    [(folder_store, "torn"), (folder_store, "after"), (bucket_store, "before"), (bucket_store, "after")],
)
def test_a_killed_process_costs_at_most_the_item_under_way(
    tmp_path: Path, source: AudioFolder, new_store: Callable[[Path], Store], manner: Manner
) -> None:
    for dies_at in range(1, 12):
        store = new_store(tmp_path / f"out-{dies_at}")
        with pytest.raises(Killed):
            work(MortalStore(store, dies_at=dies_at, manner=manner), source)
        tally = work(store, source)
        assert tally.items_redone <= 1
        assert verify(source, store).work_redone_ratio <= 1 / 6 + 1e-4
