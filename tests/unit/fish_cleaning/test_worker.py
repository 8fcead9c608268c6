"""A worker on a real folder, interrupted where it hurts."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fish_cleaning.clip import Cleaned, Reason, Reject
from fish_cleaning.commits import CommitLog, publish
from fish_cleaning.corpus import make_corpus
from fish_cleaning.isolation import answer, clean_isolated
from fish_cleaning.journal import Attempted, entries_of, journal_key, to_frame
from fish_cleaning.plan import ensure_plan
from fish_cleaning.progress import Progress
from fish_cleaning.progress_bar import line_of
from fish_cleaning.recipe import Recipe, UnitLimits
from fish_cleaning.run import Job, Worker
from fish_cleaning.source import AudioFolder
from fish_cleaning.steps.chain import StepConfigs
from fish_cleaning.stopping import StopRequest
from fish_cleaning.store import LocalStore
from fish_cleaning.tally import Tally
from fish_cleaning.telemetry import registry_of
from fish_cleaning.verify import verify

RECIPE = Recipe(name="quick", units=UnitLimits(max_items=4))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, speech_folder: Path) -> AudioFolder:
    """Return a dozen short recordings, five of them with known faults."""
    target = tmp_path_factory.mktemp("corpus")
    make_corpus(AudioFolder(speech_folder), target, items=12, seed=3, cut_s=(1.5, 2.0))
    return AudioFolder(target)


@pytest.fixture
def job(corpus: AudioFolder, tmp_path: Path) -> Job:
    """Return a job of three units that nobody has begun."""
    store = LocalStore(tmp_path / "out")
    plan = ensure_plan(store, corpus, RECIPE)
    return Job(plan=plan, recipe=RECIPE, source=corpus, store=store, lease_ttl_s=0.2)


class StopAfter(StopRequest):
    """Asks to stop once it was looked at so many times."""

    def __init__(self, looks: int) -> None:
        super().__init__()
        self._looks = looks

    @property
    def is_requested(self) -> bool:
        """Count the look."""
        self._looks -= 1
        return self._looks < 0


def work(job: Job, *, stop: StopRequest | None = None) -> Tally:
    """Run a worker as a session does: to the end, or to the stop and its last duties."""
    tally = Tally()
    worker = Worker(job, stop=stop or StopRequest(), tally=tally)
    if not worker.run():
        worker.secure()
    return tally


def verdict_of(job: Job) -> dict[str, object]:
    verdict = verify(job.source, job.store)
    return {"is_good": verdict.is_good, "problems": verdict.problems, "redone": verdict.work_redone_ratio}


ALL_GOOD = {"is_good": True, "problems": (), "redone": 0.0}


def test_each_recording_gets_the_outcome_of_its_label(job: Job) -> None:
    work(job)
    labels = json.loads((job.source.root / "labels.json").read_text())
    log = CommitLog(job.store, job.plan.units)
    log.refresh()
    reasons = {item: reject["reason"] for commit in log.commits.values() for item, reject in commit.rejected.items()}
    found = {item.name: reasons.get(item.id) for unit in job.plan.units for item in unit.items}
    assert found == labels
    assert verdict_of(job) == ALL_GOOD


@pytest.mark.parametrize("looks", [1, 2, 4, 6, 9, 13])
def test_stopping_between_any_two_items_costs_nothing(job: Job, looks: int) -> None:
    work(job, stop=StopAfter(looks))
    work(job)
    assert verdict_of(job) == ALL_GOOD


def test_a_lease_whose_holder_died_is_taken_over_with_what_it_had_done(job: Job) -> None:
    work(job, stop=StopAfter(4))
    for lease in (job.store.root / "leases").iterdir():
        lease.write_text('{"is_released": false}')  # as a holder leaves it that is killed
    tally = work(job)
    assert tally.leases_taken_over == 1
    assert tally.items.total() < job.plan.items_total
    assert verdict_of(job) == ALL_GOOD


def test_the_loser_of_a_commit_changes_nothing(job: Job) -> None:
    unit = job.plan.units[0]
    rejected = {item.id: Reject(reason=Reason.FAILED, detail="") for item in unit.items}
    other = {item.id: Cleaned(metadata_json="{}", flac=b"", duration_s=1.0) for item in unit.items}
    assert publish(job.store, unit, rejected, config_hash="c")
    assert not publish(job.store, unit, other, config_hash="c")
    log = CommitLog(job.store, job.plan.units)
    log.refresh()
    assert log.commits[unit.id].committed == ()


def test_an_item_under_which_workers_were_killed_twice_is_not_rejected_for_it(job: Job) -> None:
    unit = job.plan.units[0]
    for epoch in (1, 2):
        job.store.create(f"leases/{unit.id}.{epoch}", b'{"is_released": true}')
        file = job.store.appendable(journal_key(unit.id, epoch))
        file.append(to_frame(Attempted(item_id=unit.items[0].id)))
        file.close()
    tally = work(job)
    assert tally.items_redone == 1
    assert verdict_of(job) == ALL_GOOD | {"redone": pytest.approx(2 / 12, abs=1e-4)}


def test_an_item_that_kills_its_process_is_rejected_with_the_signal(job: Job) -> None:
    suicide = (sys.executable, "-c", "import os; os.kill(os.getpid(), 11)")
    outcome = clean_isolated(job.plan.units[0].items[0], b"", StepConfigs(), command=suicide)
    assert outcome == Reject(reason=Reason.CRASH, detail="signal 11 (SIGSEGV)")


def test_a_child_answers_as_the_worker_would(job: Job) -> None:
    item = job.plan.units[0].items[0]
    request = json.dumps({"item": {"id": item.id, "name": "", "content": "", "size_bytes": 0}, "steps": {}})
    (entry,) = entries_of(answer(request.encode() + b"\n"))
    assert entry.result == Reject(reason=Reason.EMPTY, detail="0 bytes")


def test_a_step_that_raises_costs_one_item(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(*_: object) -> Cleaned:
        raise MemoryError("no room")

    monkeypatch.setattr("fish_cleaning.run.clean", explode)
    tally = work(job)
    assert tally.items["failed"] == job.plan.items_total


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[700] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda root: damage(next(root.glob("shards/*.tar"))), "does not have the sha256"),
        (lambda root: next(root.glob("shards/*.tar")).unlink(), "is missing"),
        (lambda root: next(root.glob("shards/*.index.json")).write_text('{"members": {}}'), "the index points past"),
        (lambda root: next(root.glob("commits/*")).unlink(), "is not committed"),
        (lambda root: (root / "manifest.json").unlink(), "manifest.json does not list the commits"),
    ],
)
def test_verify_finds_what_was_spoiled(job: Job, spoil: Callable[[Path], None], problem: str) -> None:
    work(job)
    spoil(job.store.root)
    verdict = verify(job.source, job.store)
    assert not verdict.is_good
    assert any(problem in found for found in verdict.problems)


def test_verify_finds_an_item_that_two_units_hold(job: Job) -> None:
    work(job)
    first, second = sorted((job.store.root / "commits").iterdir())[:2]
    doubled = json.loads(second.read_text())
    item = json.loads(first.read_text())["committed"][0]
    doubled["rejected"][item] = {"reason": "clipped", "detail": ""}
    second.write_text(json.dumps(doubled))
    assert verify(job.source, job.store).items_doubled == 1


def test_progress_and_metrics_tell_of_the_work_done(job: Job) -> None:
    tally = work(job)
    progress = Progress(job.store, job.plan, tally)
    report = progress.report()
    assert (report.units_committed, report.units_total) == (3, 3)
    assert report.items_committed + report.items_rejected == report.items_total == 12
    assert report.work_at_risk_s == 0.0
    registry = registry_of(tally, progress)
    rejected = {"outcome": "rejected", "reason": "not_audio"}
    assert registry.get_sample_value("fish_cleaning_items_total", rejected) == 1
    assert registry.get_sample_value("fish_cleaning_units_committed") == 3
    line = line_of(replace(report, audio_s=100.0), elapsed_s=10.0)
    assert "100%  12/12 recordings" in line
    assert "10x real time" in line


def test_work_is_at_risk_from_its_beginning_until_it_is_durable() -> None:
    tally = Tally(at_risk_since_s=10.0)
    assert tally.work_at_risk_s(now_s=12.5) == 2.5
    tally.at_risk_since_s = None
    assert tally.work_at_risk_s(now_s=12.5) == 0.0
