"""What workers leave behind at the end of a run."""

import json

import pytest

from fish_slurm.summaries import RunFolder, parse_summary
from fish_slurm.view import Phase, RunSummary

PREEMPTED = {"outcome": "preempted", "items_committed": 4, "items_rejected": 1, "stop_s": 0.25}


@pytest.fixture
def runs(tmp_path):
    """Return a run folder and a function that writes a run's summary into it."""
    folder = RunFolder(tmp_path)
    folder.prepare(["demo"])

    def say(job_id: int, run: int, **changes: object) -> None:
        (tmp_path / f"demo/{job_id}.{run}.json").write_text(json.dumps(PREEMPTED | changes) + "\n")

    return folder, say


def test_a_summary_counts_what_was_finished_either_way():
    assert parse_summary(json.dumps(PREEMPTED)) == RunSummary(is_complete=False, items_finished=5, stop_s=0.25)


@pytest.mark.parametrize(
    "text", ["", '{"outcome": "comp', "[]", "{}", '{"outcome":"complete","items_committed":"x"}', "null"]
)
def test_half_a_summary_is_none(text):
    assert parse_summary(text) is None


def test_the_last_ended_run_of_each_worker_is_read(runs, cleaning):
    folder, say = runs
    say(1, 0)
    say(1, 1, items_committed=9)
    say(2, 0)
    jobs = [cleaning(1, restarts=2), cleaning(2, phase=Phase.ENDED, state="FAILED"), cleaning(3)]
    read = folder.summaries(jobs)
    assert {key: summary.items_finished for key, summary in read.items()} == {(1, 1): 10, (2, 0): 5}


def test_a_summary_that_comes_late_is_found_at_the_next_look(runs, cleaning):
    folder, say = runs
    assert folder.summaries([cleaning(1, restarts=1)]) == {}
    say(1, 0)
    assert (1, 0) in folder.summaries([cleaning(1, restarts=1)])


def test_a_cleaning_job_is_complete_once_any_worker_said_so(runs):
    folder, say = runs
    say(1, 0)
    assert folder.complete(["demo", "other"]) == frozenset()
    say(7, 2, outcome="complete")
    assert folder.complete(["demo", "other"]) == {"demo"}
