"""What counts against a worker, what wipes the slate, and what ends a cleaning job."""

import pytest

from fish_slurm.brake import Memory, remember
from fish_slurm.view import Phase, RunSummary

NOTHING_DONE = RunSummary(is_complete=False, items_finished=0, stop_s=0.1)
SOME_DONE = RunSummary(is_complete=False, items_finished=3, stop_s=0.1)
ALL_DONE = RunSummary(is_complete=True, items_finished=3, stop_s=None)


@pytest.fixture
def after_runs(view, cleaning):
    """Take a worker through runs of given lengths and summaries, as the filler would see them, and return the memory."""

    def go(*runs: tuple[int, RunSummary | None]) -> Memory:
        memory, at_s = Memory(), 1000
        for number, (length_s, summary) in enumerate(runs):
            running = cleaning(1, phase=Phase.RUNNING, restarts=number, started_at_s=at_s)
            memory = remember(memory, view(running), min_useful_run_s=30)
            back = cleaning(1, reason="BeginTime", restarts=number + 1, submitted_at_s=at_s + length_s)
            summaries = {(1, number): summary} if summary else {}
            memory = remember(memory, view(back, summaries=summaries), min_useful_run_s=30)
            memory = remember(memory, view(back, summaries=summaries), min_useful_run_s=30)
            at_s += length_s + 10
        return memory

    return go


def test_each_useful_run_without_progress_is_a_strike(after_runs):
    assert after_runs((60, NOTHING_DONE), (60, None)).strikes == {1: 2}


def test_progress_wipes_the_strikes(after_runs):
    assert after_runs((60, NOTHING_DONE), (60, NOTHING_DONE), (60, SOME_DONE)).strikes == {}


def test_a_run_cut_short_by_training_is_no_strike(after_runs):
    assert after_runs((5, NOTHING_DONE), (5, None), (29, None)).strikes == {}


@pytest.mark.parametrize(("state", "status"), [("FAILED", 1), ("FAILED", -9), ("OUT_OF_MEMORY", 0), ("COMPLETED", 0)])
def test_workers_that_end_without_finishing_anything_are_counted(view, cleaning, state, status):
    memory = Memory()
    for number in range(3):
        ended = cleaning(number, phase=Phase.ENDED, state=state, exit_status=status)
        memory = remember(memory, view(ended), min_useful_run_s=30)
        memory = remember(memory, view(ended), min_useful_run_s=30)
    assert memory.failures == {"demo": 3}


@pytest.mark.parametrize("state", ["CANCELLED", "PREEMPTED", "NODE_FAIL"])
def test_an_end_that_is_nobodys_fault_is_not_counted(view, cleaning, state):
    ended = cleaning(1, phase=Phase.ENDED, state=state)
    assert remember(Memory(), view(ended), min_useful_run_s=30).failures == {}


def test_a_failed_worker_that_finished_something_wipes_the_failures(view, cleaning):
    ended = cleaning(9, phase=Phase.ENDED, state="FAILED", exit_status=1)
    memory = remember(Memory(failures={"demo": 2}), view(ended, summaries={(9, 0): SOME_DONE}), min_useful_run_s=30)
    assert memory.failures == {}


@pytest.mark.parametrize("status", [64, 65, 78])
def test_a_status_that_a_restart_cannot_help_ends_the_cleaning_job_at_once(view, cleaning, status):
    ended = cleaning(9, phase=Phase.ENDED, state="FAILED", exit_status=status)
    memory = remember(Memory(), view(ended), min_useful_run_s=30)
    assert memory.hopeless == {"demo": f"job 9 ended with exit status {status}; its log says why"}


def test_jobs_that_slurm_forgot_are_forgotten_and_their_failures_are_not(view, cleaning):
    ended = cleaning(9, phase=Phase.ENDED, state="FAILED", exit_status=1)
    memory = remember(Memory(strikes={5: 1}), view(ended), min_useful_run_s=30)
    assert (memory.ended, memory.strikes) == ({9}, {})
    later = remember(memory, view(), min_useful_run_s=30)
    assert (later.ended, later.failures) == (frozenset(), {"demo": 1})


def test_complete_is_what_a_worker_says_and_not_what_slurm_says(view, cleaning):
    ended = cleaning(9, phase=Phase.ENDED, state="COMPLETED")
    assert remember(Memory(), view(ended), min_useful_run_s=30).complete == frozenset()
    said = remember(Memory(), view(ended, summaries={(9, 0): ALL_DONE}), min_useful_run_s=30)
    assert said.complete == {"demo"}
