"""The whole decision: order of reclaiming, filling, draining, and what survives a crash."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fish_contracts.exit_codes import ExitCode
from fish_contracts.priority import WorkClass
from fish_operator.plan import (
    CreateEngine,
    CreateWorker,
    DrainEngine,
    EngineFailed,
    EvictWorker,
    Plan,
    ReclaimDone,
    RemovePod,
    ScaleDecided,
    WorkerEnded,
)
from fish_operator.spec import SpecProblem
from fish_operator.view import PodStage


def actions(plan: Plan, kind: type) -> list:
    return [action for action in plan.pods if isinstance(action, kind)]


def events(plan: Plan, kind: type) -> list:
    return [event for event in plan.events if isinstance(event, kind)]


def status_of(plan: Plan, name: str):
    return next(write.status for write in plan.statuses if write.key.name == name)


# --- the order that does not evict twice ---


def test_more_streams_evict_one_worker_for_each_engine_that_is_missing(simulation):
    simulation.load_engines(12)
    plan = simulation.tick()
    assert len(actions(plan, EvictWorker)) == 2
    assert not actions(plan, CreateEngine), "no engine pod before its GPU is free"


def test_the_cheapest_workers_go(simulation):
    simulation.load_engines(8)
    plan = simulation.tick()
    costs = simulation.view.progress
    (evicted,) = actions(plan, EvictWorker)
    assert costs[evicted.pod.uid].work_at_risk_s == min(report.work_at_risk_s for report in costs.values())


def test_an_engine_is_created_when_its_worker_has_ended_and_not_before(simulation):
    simulation.load_engines(8)
    simulation.tick()
    assert not actions(simulation.tick(), CreateEngine)
    simulation.end_terminating()
    assert len(actions(simulation.tick(), CreateEngine)) == 1


def test_deciding_again_while_workers_are_leaving_evicts_nobody_new(simulation):
    simulation.load_engines(16)
    simulation.tick()
    for _ in range(5):
        assert not actions(simulation.tick(), EvictWorker)


@pytest.mark.parametrize("crash_before", range(6))
def test_a_crash_at_any_step_of_a_reclaim_evicts_no_second_worker_and_loses_no_engine(simulation, crash_before):
    simulation.load_engines(12)
    steps = [
        simulation.tick,
        simulation.tick,
        simulation.end_terminating,
        simulation.tick,
        simulation.schedule,
        simulation.tick,
    ]
    for number, step in enumerate(steps):
        if number == crash_before:
            simulation.crash()
        step()
    assert len(simulation.evicted) == 2
    assert len(simulation.pods(WorkClass.INFERENCE, PodStage.READY)) == 3


def test_an_engine_that_waits_for_the_scheduler_evicts_nobody_a_second_time(simulation):
    simulation.load_engines(8)
    simulation.tick()
    simulation.end_terminating()
    simulation.tick()
    assert simulation.pods(WorkClass.INFERENCE, PodStage.UNSCHEDULED)
    assert not actions(simulation.tick(), EvictWorker)


def test_when_nothing_is_left_to_evict_the_status_says_so(make, simulation):
    simulation.view = make.view(
        pods=[make.engine()],
        nodes=[make.node("node-0", gpus=1)],
        deployments=[make.deployment(desired=1)],
    )
    simulation.load_engines(16)
    plan = simulation.tick()
    capacity = next(item for item in status_of(plan, "voice").conditions if item.type == "CapacityAvailable")
    assert (capacity.status, capacity.reason) == ("False", "Insufficient")
    assert "3 engines" in capacity.message


# --- fill work ---


def test_every_gpu_that_no_engine_wants_gets_a_worker(make, simulation):
    simulation.view = make.view(pods=[make.engine()], deployments=[make.deployment(desired=1)], jobs=[make.job()])
    simulation.load_engines(1)
    assert len(actions(simulation.tick(), CreateWorker)) == 3


def test_no_worker_is_created_on_a_gpu_that_is_not_free_yet(make, simulation):
    simulation.view = make.view(
        nodes=[make.node("node-0", gpus=1)], pods=[make.worker(stage=PodStage.TERMINATING)], jobs=[make.job()]
    )
    assert not actions(simulation.tick(), CreateWorker)


def test_fill_waits_while_an_engine_is_on_its_way_to_a_gpu(make, simulation):
    waiting = make.engine(stage=PodStage.UNSCHEDULED)
    simulation.view = make.view(
        pods=[make.engine(), waiting], deployments=[make.deployment(desired=2)], jobs=[make.job()]
    )
    assert not actions(simulation.tick(), CreateWorker)


def test_an_engine_that_fits_nowhere_does_not_starve_fill_work(make, simulation):
    simulation.view = make.view(deployments=[make.deployment(gpus=4)], jobs=[make.job()])
    assert len(actions(simulation.tick(), CreateWorker)) == 4


def test_workers_without_a_node_go_first_when_an_engine_is_wanted(make, simulation):
    unscheduled = make.worker(stage=PodStage.UNSCHEDULED)
    simulation.view = make.view(
        pods=[unscheduled], deployments=[make.deployment()], jobs=[make.job()], nodes=[make.node("node-0", gpus=1)]
    )
    first = simulation.tick()
    assert [action.pod.uid for action in actions(first, RemovePod)] == [unscheduled.uid]
    assert not actions(first, CreateEngine)
    assert len(actions(simulation.tick(), CreateEngine)) == 1


def test_a_worker_that_finds_no_node_is_taken_back(make, simulation):
    unscheduled = make.worker(stage=PodStage.UNSCHEDULED)
    simulation.view = make.view(pods=[unscheduled], jobs=[make.job()], nodes=[])
    assert [action.pod.uid for action in actions(simulation.tick(), RemovePod)] == [unscheduled.uid]


def test_two_jobs_share_the_free_gpus(make, simulation):
    simulation.view = make.view(jobs=[make.job("one"), make.job("two")])
    created = actions(simulation.tick(), CreateWorker)
    assert sorted(action.owner.name for action in created) == ["one", "one", "two", "two"]


def test_a_job_gets_no_more_workers_than_it_has_units_left(make, simulation):
    worker = make.worker()
    simulation.view = make.view(
        pods=[worker], jobs=[make.job()], progress={worker.uid: make.progress(total=10, committed=8)}
    )
    assert len(actions(simulation.tick(), CreateWorker)) == 1


# --- how workers end ---


def test_an_evicted_worker_is_counted_once_and_replaced_at_once(make, simulation):
    ended = make.ended(make.worker(), ExitCode.PREEMPTED)
    simulation.view = make.view(pods=[ended], jobs=[make.job()])
    first = simulation.tick()
    assert len(actions(first, CreateWorker)) == 4
    assert status_of(first, "librivox").evictions.checkpointed == 1
    second = simulation.tick()
    assert status_of(second, "librivox").evictions.checkpointed == 1
    assert not events(second, WorkerEnded)
    assert [action.pod.uid for action in actions(second, RemovePod)] == [ended.uid]


def test_a_restarted_operator_does_not_count_an_eviction_again(make, simulation):
    simulation.view = make.view(pods=[make.ended(make.worker(), ExitCode.PREEMPTED)], jobs=[make.job()], nodes=[])
    simulation.tick()
    simulation.crash()
    assert status_of(simulation.tick(), "librivox").evictions.total == 1


def test_an_eviction_that_only_a_watch_saw_is_counted(make, simulation):
    gone = make.ended(make.worker(), ExitCode.PREEMPTED, was_deleted=True)
    simulation.view = make.view(departed=[gone], jobs=[make.job()], nodes=[])
    assert status_of(simulation.tick(), "librivox").evictions.total == 1
    assert status_of(simulation.tick(), "librivox").evictions.total == 1


def test_a_worker_that_had_to_be_killed_counts_as_forced(make, simulation):
    killed = make.ended(make.worker(), 137, was_deleted=True)
    simulation.view = make.view(departed=[killed], jobs=[make.job()], nodes=[])
    evictions = status_of(simulation.tick(), "librivox").evictions
    assert (evictions.forced, evictions.checkpointed) == (1, 0)


def test_a_worker_that_is_done_completes_the_job(make, simulation):
    simulation.view = make.view(pods=[make.ended(make.worker(), ExitCode.DONE)], jobs=[make.job()])
    plan = simulation.tick()
    status = status_of(plan, "librivox")
    assert status.percent == 100
    assert next(item.status for item in status.conditions if item.type == "Complete") == "True"
    assert not actions(plan, CreateWorker)
    simulation.crash()
    assert not actions(simulation.tick(), CreateWorker)


def test_a_worker_that_fails_is_replaced_after_a_while_that_doubles(make, simulation):
    failed = make.ended(make.worker(failures=1), ExitCode.FAILED)
    simulation.view = make.view(pods=[failed], jobs=[make.job(max_workers=1)])
    assert not actions(simulation.tick(seconds=19.0), CreateWorker)
    assert not actions(simulation.tick(seconds=1.0), CreateWorker)
    (created,) = actions(simulation.tick(), CreateWorker)
    assert created.failures == 2


def test_a_worker_that_cannot_use_its_input_fails_the_job_until_the_spec_changes(make, simulation):
    refused = make.ended(make.worker(), ExitCode.BAD_INPUT, message="/in has no recordings")
    simulation.view = make.view(pods=[refused], jobs=[make.job()])
    plan = simulation.tick(seconds=1000.0)
    failed = next(item for item in status_of(plan, "librivox").conditions if item.type == "Failed")
    assert failed.status == "True"
    assert "exit code 65: /in has no recordings" in failed.message
    assert not actions(plan, CreateWorker)
    assert not actions(simulation.tick(), RemovePod), "its log is the explanation"


# --- engines ---


def test_an_engine_that_fails_is_replaced_after_a_while_and_its_gpu_is_kept(make, simulation):
    failed = make.ended(make.engine(), 1)
    simulation.view = make.view(
        pods=[failed],
        deployments=[make.deployment(desired=1)],
        jobs=[make.job()],
        nodes=[make.node("node-0", gpus=1)],
    )
    first = simulation.tick(seconds=11.0)
    assert len(events(first, EngineFailed)) == 1
    assert not first.pods
    second = simulation.tick()
    (created,) = actions(second, CreateEngine)
    assert created.failures == 1
    assert [action.pod.uid for action in actions(second, RemovePod)] == [failed.uid]


def test_scaling_down_drains_the_engine_with_the_fewest_streams(make, simulation):
    busy, quiet = make.engine(), make.engine()
    simulation.view = make.view(
        pods=[busy, quiet],
        deployments=[make.deployment(desired=2)],
        loads={busy.uid: make.load(active=3), quiet.uid: make.load(active=1)},
    )
    drained = [action for _ in range(61) for action in actions(simulation.tick(), DrainEngine)]
    assert [action.pod.uid for action in drained] == [quiet.uid]


def test_a_drain_that_was_cut_short_is_finished(make, simulation):
    marked = make.engine(is_draining=True)
    simulation.view = make.view(pods=[make.engine(), marked], deployments=[make.deployment(desired=1)])
    assert [action.pod.uid for action in actions(simulation.tick(), DrainEngine)] == [marked.uid]


def test_lost_metrics_hold_the_replicas_and_say_so(make, simulation):
    engines = [make.engine() for _ in range(3)]
    simulation.view = make.view(pods=engines, deployments=[make.deployment(desired=3)])
    for _ in range(200):
        plan = simulation.tick()
        assert not actions(plan, DrainEngine)
    metrics = next(item for item in status_of(plan, "voice").conditions if item.type == "MetricsAvailable")
    assert (metrics.status, metrics.reason) == ("False", "Unreachable")
    assert plan.unread_metrics == 3


def test_an_engine_on_a_lost_node_is_replaced_and_does_not_count_as_draining(make, simulation):
    lost = make.engine(stage=PodStage.LOST)
    simulation.view = make.view(pods=[lost], deployments=[make.deployment(desired=1)])
    plan = simulation.tick()
    assert len(actions(plan, CreateEngine)) == 1
    assert status_of(plan, "voice").draining_replicas == 0


def test_each_change_of_replicas_is_told_once_with_its_reason(simulation):
    simulation.load_engines(12)
    (decided,) = events(simulation.tick(), ScaleDecided)
    assert (decided.before, decided.after, decided.reason) == (1, 3, "DemandRose")
    assert "12 streams" in decided.message
    assert not events(simulation.tick(), ScaleDecided)


def test_two_deployments_take_turns_at_the_last_gpus(make, simulation):
    simulation.view = make.view(
        deployments=[
            make.deployment("greedy", scaling=make.autoscaling(min_replicas=4)),
            make.deployment("modest", created_at_s=2e9),
        ]
    )
    created = actions(simulation.tick(), CreateEngine)
    assert sorted(action.owner.name for action in created) == ["greedy", "greedy", "greedy", "modest"]


# --- what is told ---


def test_a_reclaim_is_told_with_stages_that_add_up(simulation):
    simulation.load_engines(8)
    simulation.tick(seconds=2.0)
    simulation.end_terminating()
    simulation.tick(seconds=1.0)
    simulation.schedule()
    simulation.load_engines(8)
    plan = simulation.tick()
    (done,) = events(plan, ReclaimDone)
    stages = done.entry.stages
    assert (stages.decide, stages.free) == (0.0, 2.0)
    assert done.entry.total_seconds == 3.0
    assert sum(getattr(stages, name) for name in ("decide", "free", "create", "schedule", "start", "ready")) == 3.0
    assert status_of(plan, "voice").reclaims == (done.entry,)
    assert not events(simulation.tick(), ReclaimDone)


def test_every_gpu_is_in_exactly_one_state(make, simulation):
    simulation.view = make.view(
        nodes=[make.node("node-0", gpus=6, unhealthy_gpus=1), make.node("node-1", gpus=1)],
        pods=[
            make.engine(),
            make.engine(stage=PodStage.STARTING),
            make.engine(stage=PodStage.TERMINATING),
            make.worker(),
            make.worker(stage=PodStage.TERMINATING),
            make.engine(work_class=None, owner="somebody"),
        ],
    )
    states = {state.value: number for state, number in simulation.decide().gpu_states.items()}
    assert states == {
        "serving": 1,
        "loading": 1,
        "draining": 1,
        "fill": 1,
        "checkpointing": 1,
        "free": 1,
        "unhealthy": 1,
        "other": 1,
    }


def test_a_gpu_that_breaks_under_its_pod_is_counted_once(make, simulation):
    simulation.view = make.view(nodes=[make.node("node-0", gpus=1, unhealthy_gpus=1)], pods=[make.engine(gpus=2)])
    states = simulation.decide().gpu_states
    assert sum(states.values()) == states["serving"] == 2


def test_a_spec_that_cannot_be_used_is_told_and_nothing_is_touched(make, simulation):
    broken = make.deployment(desired=1)
    object.__setattr__(broken, "spec", SpecProblem(message="spec.model.source: missing"))
    simulation.view = make.view(pods=[make.engine()], deployments=[broken])
    plan = simulation.tick()
    assert not plan.pods
    assert status_of(plan, "voice").conditions[0].message == "spec.model.source: missing"


def test_what_keeps_pods_from_starting_is_told_where_their_owner_is_looked_at(make, simulation):
    stuck = {"stage": PodStage.STARTING, "waiting": "ErrImagePull: no such image"}
    simulation.view = make.view(
        pods=[make.engine(**stuck), make.worker(**stuck)], deployments=[make.deployment(desired=1)], jobs=[make.job()]
    )
    plan = simulation.tick()
    ready = next(item for item in status_of(plan, "voice").conditions if item.type == "Ready")
    running = next(item for item in status_of(plan, "librivox").conditions if item.type == "Running")
    assert "ErrImagePull: no such image" in ready.message
    assert (running.reason, "ErrImagePull: no such image" in running.message) == ("Starting", True)


# --- laws ---


@settings(max_examples=60, deadline=None)
@given(loads=st.lists(st.integers(0, 30), min_size=1, max_size=12), crashes=st.sets(st.integers(0, 40)), data=st.data())
def test_whatever_happens_no_worker_is_evicted_without_an_engine_for_it(
    make_world, loads: Sequence[int], crashes: set[int], data: st.DataObject
):
    """Each eviction gives a GPU to an engine that was missing; fill pods take only GPUs that are free."""
    world = make_world()
    for number, streams in enumerate(loads):
        if number in crashes:
            world.crash()
        world.load_engines(streams)
        missing_before = len(world.pods(WorkClass.INFERENCE))
        plan = world.tick()
        desired = status_of(plan, "voice").desired_replicas
        leaving = len(world.pods(WorkClass.CLEANING, PodStage.TERMINATING))
        assert leaving <= max(0, desired - missing_before) or not actions(plan, EvictWorker)
        free = sum(world.free_gpus(node.name) for node in world.view.nodes)
        waiting = [pod for pod in world.view.pods if pod.stage is PodStage.UNSCHEDULED]
        assert sum(pod.gpus for pod in waiting) <= free, "nothing is ever created to wait"
        for step in data.draw(st.permutations([world.end_terminating, world.schedule, lambda: None]))[:2]:
            step()
