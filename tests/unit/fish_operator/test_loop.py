"""The loop around deciding: it goes on after errors, and accounts for nothing that was not written."""

import asyncio

import pytest

from fish_operator.apply import Applied
from fish_operator.departures import Departures
from fish_operator.errors import ApiError
from fish_operator.loop import ALIVE_WITHIN_S, ControlLoop
from fish_operator.plan import Plan
from fish_operator.telemetry import Telemetry
from fish_operator.view import ClusterView


class Scene:
    """A cluster that shows what it is told to, and remembers plans."""

    def __init__(self, view: ClusterView) -> None:
        self.shown: list[ClusterView | Exception] = [view]
        self.plans: list[Plan] = []
        self.is_writable = True
        self.refusals: dict[str, str] = {}

    async def view(self) -> ClusterView:
        now = self.shown.pop(0) if len(self.shown) > 1 else self.shown[0]
        if isinstance(now, Exception):
            raise now
        return now

    async def apply(self, plan: Plan) -> Applied:
        self.plans.append(plan)
        return Applied(is_accounted=self.is_writable, refusals=self.refusals)


def loop_over(scene: Scene, departures: Departures | None = None, *, tick_s: float = 1.0) -> ControlLoop:
    return ControlLoop(
        observer=scene,
        applier=scene,
        departures=departures or Departures(),
        telemetry=Telemetry(),
        tick_s=tick_s,
    )


@pytest.mark.looptime
async def test_it_looks_once_a_tick_and_sooner_when_poked(make, looptime):
    scene = Scene(make.view())
    loop = loop_over(scene)
    running = asyncio.create_task(loop.run())
    await asyncio.sleep(3.5)
    assert len(scene.plans) == 4
    loop.poke()
    await asyncio.sleep(0.1)
    assert len(scene.plans) == 5
    running.cancel()


@pytest.mark.looptime
async def test_an_error_ends_the_round_and_not_the_loop(make, looptime):
    scene = Scene(make.view())
    refused = ApiError(verb="GET", path="/api/v1/pods", status=503, message="down")
    scene.shown = [refused, ZeroDivisionError("a bug"), make.view()]
    loop = loop_over(scene)
    running = asyncio.create_task(loop.run())
    await asyncio.sleep(1.5)
    assert not loop.is_ready()
    await asyncio.sleep(1.0)
    assert loop.is_ready()
    running.cancel()


async def test_an_end_whose_status_could_not_be_written_is_news_again(make):
    departures = Departures()
    scene = Scene(make.view(departed=[make.ended(make.worker(), 75)], jobs=[make.job()]))
    loop = loop_over(scene, departures)
    scene.is_writable = False
    await loop.tick()
    scene.is_writable = True
    await loop.tick()
    await loop.tick()
    assert [len(plan.events) for plan in scene.plans] == [1, 1, 0]


async def test_it_is_alive_while_rounds_go_through(make, monkeypatch):
    loop = loop_over(Scene(make.view()))
    assert loop.is_alive(), "a start that takes long is the startup probe's business"
    await loop._round()
    assert loop.is_alive()
    monkeypatch.setattr("fish_operator.loop.ALIVE_WITHIN_S", -1.0)
    assert not loop.is_alive()
    assert ALIVE_WITHIN_S > 10


async def test_what_the_api_server_refused_is_told_where_the_owner_is_looked_at(make):
    deployment, job = make.deployment(), make.job()
    scene = Scene(make.view(deployments=[deployment], jobs=[job]))
    loop = loop_over(scene)
    scene.refusals = {deployment.uid: "exceeded quota: gpus", job.uid: "no PriorityClass fish-fill"}
    await loop.tick()
    scene.refusals = {}
    await loop.tick()
    await loop.tick()
    told = [
        [item.message for write in plan.statuses for item in write.status.conditions if item.reason == "PodRefused"]
        for plan in scene.plans
    ]
    assert told == [[], ["exceeded quota: gpus", "no PriorityClass fish-fill"], []]
