"""Draining, back-off, sharing: the small parts of deciding."""

import pytest

from fish_operator.backoff import backoff, retry_at_s
from fish_operator.departures import Departures
from fish_operator.drain import first_to_drain
from fish_operator.fill import read_crew, share
from fish_operator.view import PodStage


def test_what_does_not_serve_yet_goes_before_what_serves(make):
    pods = {stage: make.engine(stage=stage) for stage in (PodStage.READY, PodStage.STARTING, PodStage.UNSCHEDULED)}
    left, order = list(pods.values()), []
    while (chosen := first_to_drain(left, {})) is not None:
        order.append(chosen.stage)
        left.remove(chosen)
    assert order == [PodStage.UNSCHEDULED, PodStage.STARTING, PodStage.READY]


def test_an_engine_that_does_not_say_how_busy_it_is_goes_last(make):
    silent, busy = make.engine(), make.engine()
    assert first_to_drain([silent, busy], {busy.uid: make.load(active=4)}) == busy


def test_of_equally_idle_engines_the_newest_goes(make):
    older, newer = make.engine(), make.engine()
    assert first_to_drain([newer, older], {pod.uid: make.load() for pod in (older, newer)}) == newer


@pytest.mark.parametrize(("failures", "delay_s"), [(0, 10), (1, 20), (2, 40), (4, 160), (5, 300), (500, 300)])
def test_the_delay_doubles_from_ten_seconds_to_five_minutes(make, failures: int, delay_s: float):
    failed = make.ended(make.engine(failures=failures), 1)
    assert retry_at_s(failed) - failed.end.finished_at_s == delay_s


def test_a_pod_that_ran_long_failed_for_a_new_reason(make):
    failed = make.ended(make.engine(failures=5, started_at_s=0.0), 1)
    assert retry_at_s(failed) - failed.end.finished_at_s == 10


def test_a_failed_pod_blocks_its_place_until_its_time_is_over(make):
    failed = make.ended(make.engine(), 1)
    finished_at_s = failed.end.finished_at_s
    assert backoff([failed], now_s=finished_at_s + 9.9).waiting == (failed,)
    after = backoff([failed], now_s=finished_at_s + 10.0)
    assert (after.waiting, after.over, after.failures) == ((), (failed,), 1)


def test_the_job_with_the_fewest_workers_is_served_first(make):
    one, two = make.job("one"), make.job("two")
    working = (make.worker(owner="one"), make.worker(owner="one"))
    crews = [read_crew(make.view(), one, one.spec, working), read_crew(make.view(), two, two.spec, ())]
    assert [crew.job.key.name for crew in share(crews, [2, 1])] == ["two", "two", "one"]


def test_a_worker_of_two_gpus_is_not_split_over_nodes(make):
    job = make.job(gpus=2)
    crews = [read_crew(make.view(), job, job.spec, ())]
    assert share(crews, [1, 1]) == []
    assert len(share(crews, [1, 3])) == 1


def test_departed_pods_are_told_until_they_are_forgotten(make):
    departures, pod = Departures(), make.ended(make.worker(), 75)
    departures.add(pod)
    assert departures.beyond([pod.uid]) == ()
    assert departures.beyond([]) == (pod,)
    departures.forget([pod])
    assert departures.beyond([]) == ()
