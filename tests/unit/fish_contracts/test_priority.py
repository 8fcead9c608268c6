"""The rule, and the plan that follows from it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fish_contracts.priority import (
    Holder,
    Reclaim,
    Refuse,
    WorkClass,
    may_preempt,
    plan_reclaim,
    preemption_policy,
    priority_value,
    rank,
)

INFERENCE, TRAINING, CLEANING = WorkClass.INFERENCE, WorkClass.TRAINING, WorkClass.CLEANING


def holder(
    name: str, *, work_class: WorkClass = CLEANING, gpus: int = 1, started_at_s: float = 0, at_risk_s: float = 0
):
    return Holder(name=name, work_class=work_class, gpus=gpus, started_at_s=started_at_s, work_at_risk_s=at_risk_s)


def plan(needed_gpus: int, *holders: Holder, available_gpus: int = 0, claimant: WorkClass = INFERENCE):
    return plan_reclaim(claimant=claimant, needed_gpus=needed_gpus, available_gpus=available_gpus, holders=holders)


@pytest.mark.parametrize(
    ("claimant", "victim", "allowed"),
    [
        (INFERENCE, CLEANING, True),
        (TRAINING, CLEANING, True),
        (INFERENCE, TRAINING, False),
        (TRAINING, INFERENCE, False),
        (CLEANING, INFERENCE, False),
        (CLEANING, TRAINING, False),
        (CLEANING, CLEANING, False),
    ],
)
def test_only_inference_and_training_take_from_cleaning(claimant, victim, allowed):
    assert may_preempt(claimant, victim) is allowed


def test_numbers_follow_from_the_pairs():
    assert rank(CLEANING) < rank(INFERENCE) == rank(TRAINING)
    assert (priority_value(CLEANING), priority_value(INFERENCE)) == (-100, 100_000)
    assert (preemption_policy(CLEANING), preemption_policy(INFERENCE)) == ("Never", "PreemptLowerPriority")


def test_nobody_is_stopped_while_gpus_are_available():
    assert plan(2, holder("a"), holder("b"), available_gpus=2) == Reclaim(victims=())


def test_the_cheapest_work_is_stopped_first():
    assert plan(1, holder("dear", at_risk_s=40), holder("cheap", at_risk_s=2)) == Reclaim(victims=("cheap",))


def test_the_newest_is_stopped_first_among_equals():
    assert plan(1, holder("old", started_at_s=1), holder("new", started_at_s=9)) == Reclaim(victims=("new",))


def test_training_is_never_stopped_for_inference():
    assert plan(1, holder("train", work_class=TRAINING)) == Refuse(missing_gpus=1)


def test_a_victim_that_others_make_unnecessary_is_spared():
    small, large = holder("small", at_risk_s=1), holder("large", gpus=4, at_risk_s=2)
    assert plan(4, small, large) == Reclaim(victims=("large",))


holders = st.lists(
    st.builds(
        Holder,
        name=st.uuids().map(str),
        work_class=st.sampled_from(WorkClass),
        gpus=st.integers(1, 8),
        started_at_s=st.floats(0, 1e6),
        work_at_risk_s=st.floats(0, 1e4),
    ),
    max_size=8,
)


@given(st.sampled_from([INFERENCE, TRAINING]), st.integers(0, 24), st.integers(0, 24), holders)
def test_a_plan_frees_enough_and_each_of_its_victims_is_needed(claimant, needed, available, running):
    result = plan_reclaim(claimant=claimant, needed_gpus=needed, available_gpus=available, holders=running)
    by_name = {one.name: one for one in running}
    evictable = sum(one.gpus for one in running if one.work_class is CLEANING)
    shortfall = max(0, needed - available)
    if isinstance(result, Refuse):
        assert result.missing_gpus == shortfall - evictable > 0
        return
    gained = [by_name[name].gpus for name in result.victims]
    assert all(by_name[name].work_class is CLEANING for name in result.victims)
    assert sum(gained) >= shortfall
    assert all(sum(gained) - gpus < shortfall for gpus in gained)
