"""Where engines get their GPUs from."""

from hypothesis import given
from hypothesis import strategies as st

from fish_contracts.priority import Holder, WorkClass
from fish_operator.victims import Coming, Evict, Free, NodePool, NoRoom, Want, place_all


def holder(name: str, *, gpus: int = 1, at_risk_s: float = 1.0) -> Holder:
    return Holder(name=name, work_class=WorkClass.CLEANING, gpus=gpus, started_at_s=0.0, work_at_risk_s=at_risk_s)


def pool(name: str = "node-0", *, free: int = 0, coming: int = 0, holders: tuple[Holder, ...] = ()) -> NodePool:
    return NodePool(name=name, free=free, coming=coming, holders=holders)


def want(gpus: int = 1, *, may_evict: bool = True) -> Want:
    return Want(gpus=gpus, may_evict=may_evict)


def test_a_free_gpu_is_taken_before_anyone_is_evicted():
    placements, _ = place_all([want()], [pool(free=1, holders=(holder("a"),))])
    assert placements == [Free()]


def test_a_gpu_that_is_coming_already_is_waited_for():
    placements, _ = place_all([want()], [pool(coming=1, holders=(holder("a"),))])
    assert placements == [Coming()]


def test_a_coming_gpu_is_promised_once():
    placements, _ = place_all([want(), want()], [pool(coming=1, holders=(holder("a"), holder("b")))])
    assert placements == [Coming(), Evict(victims=("b",))] or placements == [Coming(), Evict(victims=("a",))]


def test_the_worker_that_loses_least_goes_whatever_its_node():
    pools = [
        pool("node-0", holders=(holder("long-ago", at_risk_s=30.0),)),
        pool("node-1", holders=(holder("just-saved", at_risk_s=0.5),)),
    ]
    placements, _ = place_all([want()], pools)
    assert placements == [Evict(victims=("just-saved",))]


def test_gpus_of_two_nodes_do_not_make_one_engine():
    placements, _ = place_all([want(2)], [pool("node-0", free=1), pool("node-1", free=1)])
    assert placements == [NoRoom()]


def test_a_large_engine_uses_what_is_free_and_evicts_for_the_rest_only():
    placements, left = place_all([want(2)], [pool(free=1, holders=(holder("a"), holder("b", at_risk_s=9.0)))])
    assert placements == [Evict(victims=("a",))]
    assert (left[0].free, left[0].coming) == (0, 0)


def test_large_holes_stay_for_large_engines():
    _, left = place_all([want(1)], [pool("node-0", free=2), pool("node-1", free=1)])
    assert [item.free for item in left] == [2, 0]


def test_who_may_not_evict_waits():
    placements, _ = place_all([want(may_evict=False)], [pool(holders=(holder("a"),))])
    assert placements == [NoRoom()]


holders = st.lists(st.tuples(st.integers(1, 2), st.floats(0, 100)), max_size=4)
pools = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), holders), min_size=1, max_size=3)


@given(wants=st.lists(st.integers(1, 3), max_size=6), nodes=pools)
def test_no_victim_is_one_too_many(wants: list[int], nodes: list[tuple[int, int, list[tuple[int, float]]]]):
    """What is evicted is needed on its node: without any one victim, the engines placed there would not fit."""
    made = [
        pool(
            f"node-{number}",
            free=free,
            coming=coming,
            holders=tuple(
                holder(f"{number}.{place}", gpus=gpus, at_risk_s=risk) for place, (gpus, risk) in enumerate(work)
            ),
        )
        for number, (free, coming, work) in enumerate(nodes)
    ]
    placements, left = place_all([want(gpus) for gpus in wants], made)
    victims = [name for placement in placements if isinstance(placement, Evict) for name in placement.victims]
    assert len(victims) == len(set(victims))
    sizes = {item.name: item.gpus for node in made for item in node.holders}
    for placement, gpus in zip(placements, wants, strict=True):
        if isinstance(placement, Evict):
            gained = sum(sizes[name] for name in placement.victims)
            assert all(gained - sizes[name] < gpus for name in placement.victims)
    before = sum(node.free + node.coming for node in made) + sum(sizes[name] for name in victims)
    placed = sum(gpus for placement, gpus in zip(placements, wants, strict=True) if placement != NoRoom())
    assert sum(node.free + node.coming for node in left) == before - placed
    assert all(node.free >= 0 and node.coming >= 0 for node in left)
