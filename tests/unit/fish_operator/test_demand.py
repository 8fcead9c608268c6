"""How many engines the streams need."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fish_operator.demand import Demand, DemandWindow, Replicas, measure, target
from fish_operator.spec import AutoScaling, ManualScaling
from fish_operator.status import Reason
from fish_operator.view import PodStage

SCALING = AutoScaling(min_replicas=1, max_replicas=4, streams_per_replica=4, scale_down_window_s=60.0)


def demand(streams: int, *, unread: int = 0, asked: int = 1) -> Demand:
    return Demand(active=streams, queued=0, asked=asked, unread=unread)


def replicas(live: int, *, draining: int = 0, last_desired: int | None = None) -> Replicas:
    return Replicas(live=live, draining=draining, last_desired=live if last_desired is None else last_desired)


def full_window(peak: int, *, at_s: float) -> DemandWindow:
    """Return a window with one sample that is about to leave it."""
    return DemandWindow(samples=((at_s - 1.0, peak),), complete_since_s=at_s - 1000.0)


@pytest.mark.parametrize(("streams", "expected"), [(0, 1), (1, 1), (4, 1), (5, 2), (8, 2), (9, 3), (16, 4), (1000, 4)])
def test_replicas_follow_the_total_of_streams_within_the_limits(streams: int, expected: int):
    decided, _ = target(SCALING, demand=demand(streams), current=replicas(1), window=DemandWindow(), at_s=0.0)
    assert decided.replicas == expected


def test_a_rise_is_met_at_once_and_in_full():
    decided, _ = target(SCALING, demand=demand(16), current=replicas(1), window=DemandWindow(), at_s=0.0)
    assert (decided.replicas, decided.reason) == (4, Reason.DEMAND_ROSE)


def test_a_fall_waits_for_a_whole_window_and_goes_one_at_a_time():
    window, seen = DemandWindow(), []
    for at_s in range(0, 70, 10):
        decided, window = target(SCALING, demand=demand(0), current=replicas(4), window=window, at_s=float(at_s))
        seen.append(decided.replicas)
    assert seen == [4, 4, 4, 4, 4, 4, 3]


def test_the_highest_need_in_the_window_keeps_replicas_up():
    window = full_window(peak=3, at_s=100.0)
    decided, _ = target(SCALING, demand=demand(0), current=replicas(3), window=window, at_s=100.0)
    assert decided.replicas == 3


def test_nothing_more_goes_while_one_still_drains():
    window = full_window(peak=1, at_s=100.0)
    decided, _ = target(SCALING, demand=demand(0), current=replicas(3, draining=1), window=window, at_s=100.0)
    assert (decided.replicas, decided.reason) == (3, Reason.DRAINING)


def test_after_a_restart_replicas_are_held_for_a_whole_window():
    decided, _ = target(SCALING, demand=demand(0), current=replicas(4), window=DemandWindow(), at_s=1e6)
    assert (decided.replicas, decided.reason) == (4, Reason.WAITING_FOR_WINDOW)


def test_a_failed_engine_does_not_lower_the_decision():
    decided, _ = target(SCALING, demand=demand(8), current=replicas(1, last_desired=3), window=DemandWindow(), at_s=0.0)
    assert decided.replicas == 3


def test_a_lower_max_is_obeyed_one_replica_at_a_time():
    scaling = AutoScaling(min_replicas=1, max_replicas=2, streams_per_replica=4, scale_down_window_s=60.0)
    decided, _ = target(scaling, demand=demand(16), current=replicas(4), window=DemandWindow(), at_s=0.0)
    assert (decided.replicas, decided.reason) == (3, Reason.LIMITS_CHANGED)


def test_a_new_deployment_starts_at_its_minimum():
    current = Replicas(live=0, draining=0, last_desired=None)
    decided, _ = target(SCALING, demand=demand(0, asked=0), current=current, window=DemandWindow(), at_s=0.0)
    assert (decided.replicas, decided.reason) == (1, Reason.FIRST_SEEN)


def test_what_some_engines_report_can_still_raise_replicas():
    decided, _ = target(
        SCALING, demand=demand(12, asked=2, unread=1), current=replicas(2), window=DemandWindow(), at_s=0.0
    )
    assert (decided.replicas, decided.reason) == (3, Reason.METRICS_LOST)


def test_a_fixed_number_is_reached_up_at_once_and_down_one_by_one():
    up, _ = target(ManualScaling(replicas=3), demand=demand(0), current=replicas(1), window=DemandWindow(), at_s=0.0)
    down, _ = target(ManualScaling(replicas=0), demand=demand(0), current=replicas(3), window=DemandWindow(), at_s=0.0)
    assert (up.replicas, down.replicas) == (3, 2)


windows = st.lists(st.integers(1, 4), max_size=10).map(
    lambda peaks: DemandWindow(samples=tuple((90.0 + n, peak) for n, peak in enumerate(sorted(peaks, reverse=True))))
)


@given(live=st.integers(0, 4), last=st.integers(0, 4), streams=st.integers(0, 100), window=windows)
def test_lost_metrics_never_scale_down(live: int, last: int, streams: int, window: DemandWindow):
    current = Replicas(live=live, draining=0, last_desired=last)
    decided, after = target(
        SCALING, demand=demand(streams, asked=3, unread=1), current=current, window=window, at_s=100.0
    )
    assert decided.replicas >= max(live, last)
    assert not after.is_full(at_s=1e9, window_s=0.0), "a fall needs a whole window of complete readings again"


@given(live=st.integers(1, 4), draining=st.integers(0, 2), at_s=st.floats(0, 1e6), since_s=st.floats(0, 1e6))
def test_zero_load_never_raises_replicas(live: int, draining: int, at_s: float, since_s: float):
    window = DemandWindow(complete_since_s=min(since_s, at_s))
    decided, _ = target(SCALING, demand=demand(0), current=replicas(live, draining=draining), window=window, at_s=at_s)
    assert decided.replicas <= live


@given(st.lists(st.tuples(st.floats(0.1, 30.0), st.integers(0, 9)), min_size=1, max_size=40))
def test_the_window_remembers_exactly_the_highest_need_of_its_span(steps: list[tuple[float, int]]):
    window, at_s, samples = DemandWindow(), 0.0, []
    for pause_s, need in steps:
        at_s += pause_s
        samples.append((at_s, need))
        window = window.with_sample(at_s=at_s, replicas=need, window_s=60.0)
        assert window.peak() == max(need for when_s, need in samples if when_s >= at_s - 60.0)


def test_streams_of_a_draining_engine_need_no_replica(make):
    serving, draining = make.engine(), make.engine(is_draining=True)
    seen = measure([serving, draining], {serving.uid: make.load(2, 1), draining.uid: make.load(4)})
    assert (seen.streams, seen.is_complete) == (3, True)


def test_an_engine_that_still_starts_is_not_missing_from_the_metrics(make):
    serving, starting = make.engine(), make.engine(stage=PodStage.STARTING)
    assert measure([serving, starting], {serving.uid: make.load(2)}).is_complete


def test_without_an_engine_to_ask_nothing_is_known(make):
    assert not measure([make.engine(stage=PodStage.STARTING)], {}).is_complete
