"""The filler's decisions: what fills idle GPUs, what waits, what is held, and that nothing is ever taken."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fish_contracts.priority import WorkClass
from fish_slurm.brake import Memory
from fish_slurm.decide import Cancel, Hold, Limits, StartNow, Submit, decide
from fish_slurm.view import ClusterView, Job, Label, Node, Phase


def test_idle_gpus_get_a_worker_each(view, limits):
    plan = decide(view(used_gpus=5), {"demo": 100}, Memory(), limits())
    assert plan.actions == tuple(Submit(name="demo", slot=slot) for slot in range(3))


def test_a_buffer_of_workers_waits_in_the_queue_of_a_full_cluster(view, limits):
    plan = decide(view(used_gpus=8), {"demo": 100}, Memory(), limits(pending_buffer=2))
    assert len(plan.actions) == 2


def test_workers_that_wait_already_count_for_idle_gpus_and_buffer(view, limits, cleaning):
    waiting = [cleaning(number, slot=number) for number in range(3)]
    plan = decide(view(*waiting, used_gpus=6), {"demo": 100}, Memory(), limits(pending_buffer=2))
    assert plan.actions == (Submit(name="demo", slot=3),)


def test_a_cleaning_job_never_has_more_workers_than_it_may(view, limits, cleaning):
    running = [cleaning(number, slot=number, phase=Phase.RUNNING) for number in range(2)]
    plan = decide(view(*running, used_gpus=2), {"demo": 3}, Memory(), limits())
    assert plan.actions == (Submit(name="demo", slot=2),)


def test_the_first_cleaning_job_comes_first(view, limits):
    plan = decide(view(used_gpus=6), {"urgent": 1, "other": 5}, Memory(), limits())
    assert plan.actions == (Submit(name="urgent", slot=0), Submit(name="other", slot=0))


def test_a_requeued_worker_may_start_once_the_second_of_its_requeue_is_over(view, limits, cleaning):
    requeued = cleaning(1, reason="BeginTime", restarts=1, submitted_at_s=10_000)
    assert decide(view(requeued, now_s=10_001.9), {"demo": 1}, Memory(), limits()).actions == ()
    assert decide(view(requeued, now_s=10_002.0), {"demo": 1}, Memory(), limits()).actions == (StartNow(job_id=1),)


def test_a_begin_time_that_a_person_asked_for_is_left_alone(view, limits, cleaning):
    planned = cleaning(1, reason="BeginTime", restarts=0)
    assert decide(view(planned), {"demo": 1}, Memory(), limits()).actions == ()


def test_gpus_that_training_is_about_to_take_are_not_filled(view, limits, training):
    plan = decide(view(training(1, gpus=3), used_gpus=4), {"demo": 9}, Memory(), limits())
    assert len(plan.actions) == 1


def test_training_that_cleaning_could_not_make_room_for_keeps_no_gpu_idle(view, limits, training):
    other = training(1, gpus=6, phase=Phase.RUNNING)
    plan = decide(view(other, training(2, gpus=8), used_gpus=6), {"demo": 9}, Memory(), limits())
    assert len(plan.actions) == 2


@pytest.mark.parametrize("reason", ["Dependency", "JobHeldUser", "BeginTime", "QOSGrpGRES"])
def test_training_that_waits_for_something_else_than_gpus_keeps_no_gpu_idle(view, limits, training, reason):
    plan = decide(view(training(1, gpus=8, reason=reason), used_gpus=7), {"demo": 9}, Memory(), limits())
    assert len(plan.actions) == 1


def test_a_node_that_takes_no_work_has_no_idle_gpus(view, limits):
    drained = Node(name="n1", gpus=8, used_gpus=0, takes_work=False, reason="Kill task failed")
    assert decide(view(nodes=(drained,)), {"demo": 9}, Memory(), limits()).actions == ()


def test_without_any_node_nothing_is_submitted(view, limits):
    assert decide(view(nodes=()), {"demo": 9}, Memory(), limits(pending_buffer=4)).actions == ()


def test_the_second_job_of_a_slot_is_removed_while_it_waits(view, limits, cleaning):
    twice = (cleaning(1, slot=0, phase=Phase.RUNNING), cleaning(2, slot=0))
    plan = decide(view(*twice, used_gpus=8), {"demo": 1}, Memory(), limits())
    assert plan.actions == (Cancel(job_id=2, reason="slot 0 of demo has a job already"),)


def test_jobs_of_a_cleaning_job_outside_the_backlog_are_left_alone(view, limits, cleaning):
    by_hand = cleaning(1, name="by-hand", reason="BeginTime", restarts=1)
    assert decide(view(by_hand, used_gpus=8), {"demo": 1}, Memory(), limits()).actions == ()


def test_a_complete_cleaning_job_gets_no_worker_and_its_waiting_ones_are_removed(view, limits, cleaning):
    memory = Memory(complete=frozenset({"demo"}))
    plan = decide(view(cleaning(1), cleaning(2, slot=1, phase=Phase.RUNNING)), {"demo": 9}, memory, limits())
    assert plan.actions == (Cancel(job_id=1, reason="cleaning job demo: complete"),)
    assert plan.stopped == {"demo": "complete"}


def test_a_worker_without_progress_is_held_and_not_started(view, limits, cleaning):
    memory = Memory(strikes={1: 3})
    plan = decide(view(cleaning(1, reason="BeginTime", restarts=3)), {"demo": 1}, memory, limits())
    assert plan.actions == (Hold(job_id=1, reason="3 runs in a row without finishing a recording"),)


def test_a_held_worker_keeps_its_slot_and_is_not_counted_on(view, limits, cleaning):
    held = cleaning(1, slot=0, reason="JobHeldUser")
    plan = decide(view(held, used_gpus=7), {"demo": 2}, Memory(), limits())
    assert plan.actions == (Submit(name="demo", slot=1),)


def test_a_large_cluster_is_filled_in_batches(view, limits):
    node = Node(name="n", gpus=1000, used_gpus=0, takes_work=True, reason="")
    assert len(decide(view(nodes=(node,)), {"demo": 2000}, Memory(), limits()).actions) == 50


JOBS = st.builds(
    Job,
    job_id=st.integers(1, 99),
    user_id=st.integers(0, 2),
    phase=st.sampled_from(Phase),
    state=st.sampled_from(["PENDING", "RUNNING", "COMPLETED", "FAILED", "NODE_FAIL"]),
    reason=st.sampled_from(["None", "Resources", "BeginTime", "JobHeldAdmin", "Dependency"]),
    partition=st.sampled_from(["clean", "train", "serve", "other"]),
    gpus=st.integers(0, 9),
    restarts=st.integers(0, 5),
    exit_status=st.sampled_from([0, 1, 65, 75, -9]),
    submitted_at_s=st.integers(9_990, 10_000),
    started_at_s=st.none() | st.integers(9_000, 10_000),
    label=st.none() | st.builds(Label, name=st.sampled_from(["demo", "other"]), slot=st.integers(0, 3)),
)
VIEWS = st.builds(
    ClusterView,
    now_s=st.just(10_000.0),
    jobs=st.lists(JOBS, max_size=12, unique_by=lambda job: job.job_id).map(tuple),
    nodes=st.lists(
        st.builds(
            Node,
            name=st.just("n"),
            gpus=st.integers(0, 8),
            used_gpus=st.integers(0, 8),
            takes_work=st.booleans(),
            reason=st.just(""),
        ),
        max_size=3,
    ).map(tuple),
    summaries=st.just({}),
)
LIMITS = Limits(partition_classes={"clean": WorkClass.CLEANING, "serve": WorkClass.INFERENCE})


@settings(max_examples=40)
@given(view=VIEWS)
def test_only_its_own_pending_jobs_are_ever_touched(view):
    plan = decide(view, {"demo": 4}, Memory(), LIMITS)
    touched = {action.job_id for action in plan.actions if not isinstance(action, Submit)}
    own_pending = {
        job.job_id for job in view.jobs if job.label and job.label.name == "demo" and job.phase is Phase.PENDING
    }
    assert touched <= own_pending


@settings(max_examples=40)
@given(view=VIEWS)
def test_a_slot_never_gets_a_second_job(view):
    plan = decide(view, {"demo": 4}, Memory(), LIMITS)
    taken = {job.label.slot for job in view.jobs if job.label and job.label.name == "demo" and job.phase != Phase.ENDED}
    submitted = [action.slot for action in plan.actions if isinstance(action, Submit)]
    assert not taken & set(submitted)
    assert len(submitted) == len(set(submitted))


@settings(max_examples=40)
@given(view=VIEWS)
def test_deciding_twice_from_the_same_view_changes_nothing(view):
    first = decide(view, {"demo": 4}, Memory(), LIMITS)
    second = decide(view, {"demo": 4}, first.memory, LIMITS)
    assert first == second
