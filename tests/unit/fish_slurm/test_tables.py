"""Reading what squeue and sinfo print, recorded from real clusters."""

import time

import pytest

from fish_contracts.priority import WorkClass
from fish_slurm.brake import Memory
from fish_slurm.decide import Limits, decide
from fish_slurm.errors import UnreadableOutput
from fish_slurm.tables import count_array_tasks, count_gpus, parse_jobs, parse_labels, parse_nodes
from fish_slurm.view import ClusterView, Label, Phase

VERSIONS = {"22.05.8": 0, "24.11.5": 16}
"""Recorded releases, and how many trainings ran in the recording before what both have in common."""


@pytest.fixture(scope="module", params=VERSIONS)
def version(request):
    """Go through the recorded releases."""
    return request.param


@pytest.fixture(scope="module")
def jobs(recorded, version):
    """The jobs of a recording, trainings numbered from 9 on."""
    labels = parse_labels((recorded / f"labels-{version}.txt").read_text())
    found = {job.job_id: job for job in parse_jobs((recorded / f"squeue-{version}.txt").read_text(), labels)}
    earlier = VERSIONS[version]
    return {number: found[number if number <= 8 else number + earlier] for number in range(1, 21)}


def test_a_requeued_worker_is_delayed_and_known_as_ours(jobs):
    assert jobs[2].is_delayed
    assert jobs[2].restarts > 0
    assert jobs[2].label == Label(name="demo", slot=1)


def test_the_submit_time_of_a_requeued_job_is_that_of_its_requeue(jobs):
    assert jobs[2].submitted_at_s > jobs[3].submitted_at_s


def test_a_held_job_is_held_whoever_held_it(jobs):
    assert jobs[7].is_held
    assert jobs[18].is_held


@pytest.mark.parametrize(("job_id", "status"), [(9, 0), (10, 65), (11, 75), (12, -9)])
def test_exit_statuses_are_taken_apart(jobs, job_id, status):
    assert jobs[job_id].exit_status == status


@pytest.mark.parametrize(
    ("job_id", "gpus"),
    [(9, 2), (13, 2), (14, 3), (15, 8), (16, 4), (10, 0)],
    ids=["--gres", "--gpus", "--gpus-per-task, 3 tasks", "--gpus-per-node, 2 nodes", "array of 6, 4 at once", "none"],
)
def test_gpus_are_counted_whichever_option_asked_for_them(jobs, job_id, gpus):
    assert jobs[job_id].gpus == gpus


def test_only_work_that_waits_for_nothing_but_gpus_waits_for_gpus(jobs):
    assert {job_id for job_id, job in jobs.items() if job.waits_for_gpus} == {16}


def test_a_job_name_or_comment_with_quotes_and_newlines_breaks_no_row(jobs):
    assert jobs[13].label is None
    assert jobs[13].phase is Phase.RUNNING


def test_a_draining_node_takes_no_work_and_says_why(recorded, version):
    first, second = parse_nodes((recorded / f"sinfo-{version}.txt").read_text())
    assert (first.name, first.gpus, first.used_gpus, first.takes_work) == ("n1", 4, 4, True)
    assert (second.name, second.takes_work, second.reason) == ("n2", False, "Kill task failed")


@pytest.mark.parametrize(
    ("state", "takes_work"),
    [
        ("idle", True),
        ("mixed", True),
        ("allocated", True),
        ("mixed+planned", True),
        ("idle+drain", False),
        ("down", False),
        ("down*", False),
        ("idle+reserved", False),
        ("idle+maint", False),
        ("mixed+reboot_issued", False),
        ("a word of the future", False),
    ],
)
def test_only_nodes_in_plain_working_order_take_work(recorded, state, takes_work):
    text = (recorded / "sinfo-22.05.8.txt").read_text().replace("allocated+drain".ljust(80), state.ljust(80))
    assert parse_nodes(text)[1].takes_work is takes_work


def test_a_job_state_of_the_future_is_alive_and_left_alone(recorded):
    text = (recorded / "squeue-22.05.8.txt").read_text().replace("RUNNING  ", "EXPEDITE ")
    assert {job.phase for job in parse_jobs(text) if job.state == "EXPEDITE"} == {Phase.OTHER}


@pytest.mark.parametrize(
    "text", ["", "slurm_load_jobs error: Unable to contact slurm controller", "JOBID PARTITION NAME\n1 clean demo\n"]
)
def test_output_of_another_shape_is_an_error_that_says_what_was_expected(text):
    with pytest.raises(UnreadableOutput, match="expected"):
        parse_jobs(text)


@pytest.mark.parametrize(
    ("tres", "gpus"),
    [
        ("gres:gpu:1", 1),
        ("gres:gpu", 1),
        ("gres/gpu:4", 4),
        ("gres/gpu:h100:2", 2),
        ("gres/gpu=3", 3),
        ("gpu:fake:4(IDX:0-3)", 4),
        ("gpu:a100:2(S:0-1),gpu:h100:4(S:0,2),nic:2", 6),
        ("gpu:fake:0(IDX:N/A)", 0),
        ("shard:8", 0),
        ("N/A", 0),
        ("(null)", 0),
    ],
)
def test_gpus_are_counted_in_every_spelling(tres, gpus):
    assert count_gpus(tres) == gpus


@pytest.mark.parametrize(
    ("array_id", "tasks"),
    [("7", 1), ("5_3", 1), ("5_[1-6]", 6), ("5_[1-10:3,20]", 5), ("5_[1-100%4]", 4), ("5_[1,3,...]", 3)],
)
def test_array_tasks_are_counted(array_id, tasks):
    assert count_array_tasks(array_id) == tasks


def test_another_users_comment_cannot_pass_for_a_label():
    assert parse_labels("7|fish:job=demo;slot=3\n8|x\nfish:job=demo;slot=1\n9|fish:job=../up;slot=1\n") == {
        7: Label(name="demo", slot=3)
    }


def test_two_thousand_jobs_and_five_hundred_nodes_take_less_than_50_ms_of_cpu(recorded):
    squeue = (recorded / "squeue-22.05.8.txt").read_text().rstrip("\n").splitlines()
    sinfo = (recorded / "sinfo-22.05.8.txt").read_text().rstrip("\n").splitlines()
    many_jobs = "\n".join([squeue[0], *(f"{number:<12}{squeue[1 + number % 20][12:]}" for number in range(2000))])
    many_nodes = "\n".join([sinfo[0], *(sinfo[1 + number % 2] for number in range(500))])
    labels = {number: Label(name="demo", slot=number) for number in range(0, 2000, 2)}
    limits = Limits(partition_classes={"clean": WorkClass.CLEANING})

    def round_s() -> float:
        begun_s = time.thread_time()
        jobs, nodes = parse_jobs(many_jobs, labels), parse_nodes(many_nodes)
        decide(ClusterView(now_s=1e9, jobs=jobs, nodes=nodes, summaries={}), {"demo": 2000}, Memory(), limits)
        return time.thread_time() - begun_s

    assert min(round_s() for _ in range(5)) < 0.05
