"""A worker dies before, in the middle of and after each of its writes; the next one finishes the job and nothing shows."""

import hashlib
from itertools import count
from pathlib import Path
from typing import Literal

import pytest

from fish_cleaning.clip import Cleaned, Item, Reason, Reject
from fish_cleaning.plan import ensure_plan
from fish_cleaning.recipe import Recipe, UnitLimits
from fish_cleaning.run import Job, Worker
from fish_cleaning.source import AudioFolder
from fish_cleaning.steps.chain import StepConfigs
from fish_cleaning.stopping import StopRequest
from fish_cleaning.store import AppendOnly, LocalStore
from fish_cleaning.tally import Tally
from fish_cleaning.verify import verify

Manner = Literal["before", "torn", "after", "power cut"]
RECIPE = Recipe(name="quick", units=UnitLimits(max_items=3))


class Killed(BaseException):
    """Stands for SIGKILL: nothing in the worker catches it."""


class MortalStore(LocalStore):
    """Kills its worker at a chosen write. After a power cut, what was appended and not synced is gone."""

    def __init__(self, root: Path, *, dies_at: int, manner: Manner) -> None:
        super().__init__(root)
        self.dies_at, self.manner = dies_at, manner
        self.writes = 0
        self.files: list[MortalFile] = []

    @property
    def is_dead(self) -> bool:
        """Tell whether the worker died."""
        return self.writes >= self.dies_at

    def begin(self) -> None:
        """Come to a write, and die if this is the one and has not to happen first."""
        self.writes += 1
        if self.writes == self.dies_at and self.manner == "before":
            raise Killed

    def end(self) -> None:
        """Have done a write, and die if this was the one."""
        if self.writes == self.dies_at:
            for file in self.files:
                file.lose_what_was_not_synced()
            raise Killed

    def get(self, key: str) -> bytes | None:
        """Return a blob; to a heartbeat that outlives its worker everything looks taken, so that it ends."""
        return b"" if self.is_dead else super().get(key)

    def create(self, key: str, data: bytes) -> bool:
        """Put a blob where none is."""
        self.begin()
        is_created = super().create(key, data)
        self.end()
        return is_created

    def appendable(self, key: str) -> AppendOnly:
        """Open a new file."""
        self.files.append(MortalFile(self, self.root / key, super().appendable(key)))
        return self.files[-1]


class MortalFile:
    def __init__(self, store: MortalStore, path: Path, file: AppendOnly) -> None:
        self._store, self._path, self._file = store, path, file
        self._synced_bytes = 0

    def append(self, data: bytes) -> None:
        self._store.begin()
        is_torn = self._store.is_dead and self._store.manner == "torn"
        self._file.append(data[: len(data) // 2] if is_torn else data)
        self._store.end()

    def sync(self) -> None:
        self._file.sync()
        self._synced_bytes = self._path.stat().st_size

    def close(self) -> None:
        self._file.close()

    def lose_what_was_not_synced(self) -> None:
        if self._store.manner == "power cut":
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


def work(store: LocalStore, source: AudioFolder) -> Tally:
    """Run a worker to the end; with no time to live, it takes over whatever another one holds."""
    tally = Tally()
    plan = ensure_plan(store, source, RECIPE)
    job = Job(plan=plan, recipe=RECIPE, source=source, store=store, lease_ttl_s=0.0)
    assert Worker(job, stop=StopRequest(), tally=tally).run()
    return tally


@pytest.mark.parametrize("manner", ["before", "torn", "after", "power cut"])
def test_dying_at_any_write_loses_and_doubles_nothing(tmp_path: Path, source: AudioFolder, manner: Manner) -> None:
    for dies_at in count(1):
        root = tmp_path / f"out-{dies_at}"
        try:
            work(MortalStore(root, dies_at=dies_at, manner=manner), source)
        except Killed:
            work(LocalStore(root), source)
        else:
            break  # it came to its end before that many writes
        verdict = verify(source, LocalStore(root))
        assert verdict.problems == (), f"died at write {dies_at}"
        assert (verdict.items_committed, verdict.items_rejected, verdict.items_doubled) == (4, 2, 0)
    assert dies_at > 20  # the plan; lease, journal entries, shard, index and commit of two units


@pytest.mark.parametrize("manner", ["torn", "after"])
def test_a_killed_process_costs_at_most_the_item_under_way(tmp_path: Path, source: AudioFolder, manner: Manner) -> None:
    for dies_at in range(1, 12):
        root = tmp_path / f"out-{dies_at}"
        with pytest.raises(Killed):
            work(MortalStore(root, dies_at=dies_at, manner=manner), source)
        tally = work(LocalStore(root), source)
        assert tally.items_redone <= 1
        assert verify(source, LocalStore(root)).work_redone_ratio <= 1 / 6 + 1e-4
