"""The wave's shape, and what the report calls a broken promise."""

import json
from dataclasses import replace

import pytest

from fish_local.demo.report import Report, broken_promises, is_slow, percentile
from fish_local.demo.wave import Phase, duration_s, phase_at

CALM = Phase(name="calm", duration_s=10, listeners=1)
STORM = Phase(name="storm", duration_s=5, listeners=9)

GOOD = Report(
    scale_ups=2,
    scale_downs=3,
    evictions=3,
    reclaims=3,
    reclaim_s=(6.0, 7.5, 9.0),
    reclaim_stage_s={"evict": (0.5, 0.6, 0.7)},
    streams_total=80,
    streams_cut=0,
    first_audio_s={"p50": 0.2, "p95": 0.9},
    items_expected=240,
    items_committed=239,
    items_rejected=1,
    items_lost=0,
    items_doubled=0,
    work_redone_ratio=0.01,
    gpu_state_seconds={"serving": 100.0, "fill": 260.0, "loading": 30.0, "free": 10.0},
    stage_s={"up": 9.0},
)


@pytest.mark.parametrize(
    ("elapsed_s", "phase"), [(0, CALM), (9.9, CALM), (10, STORM), (14.9, STORM), (15, None), (99, None)]
)
def test_phases_follow_each_other(elapsed_s, phase):
    assert phase_at((CALM, STORM), elapsed_s) == phase


def test_a_wave_lasts_as_long_as_its_phases():
    assert duration_s((CALM, STORM)) == 15


def test_a_good_run_breaks_no_promise():
    assert broken_promises(GOOD) == []


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"scale_ups": 1}, "scaled up"),
        ({"scale_downs": 0}, "scaled down"),
        ({"evictions": 1}, "evicted"),
        ({"evictions": 4}, "evicted for 3 engines"),
        ({"streams_total": 0}, "no stream"),
        ({"streams_cut": 1}, "cut"),
        ({"items_expected": 0}, "no items"),
        ({"items_lost": 2}, "lost"),
        ({"items_doubled": 1}, "twice"),
    ],
)
def test_each_promise_is_checked(change, word):
    sentences = broken_promises(replace(GOOD, **change))
    assert any(word in sentence for sentence in sentences), sentences


def test_a_slow_machine_breaks_no_promise_and_is_told_so():
    slow = replace(GOOD, reclaim_s=(5.0, 40.0))
    assert (is_slow(GOOD), is_slow(slow), broken_promises(slow)) == (False, True, [])


def test_useful_share_counts_serving_and_cleaning():
    assert GOOD.gpu_seconds_used == pytest.approx(0.9)


def test_the_report_is_plain_json():
    assert json.loads(GOOD.to_json())["gpu_state_seconds"]["fill"] == 260


@pytest.mark.parametrize(("values", "expected"), [((), 0.0), ((4.0,), 4.0), ((1.0, 2.0, 3.0), 2.0)])
def test_percentiles_of_few_values(values, expected):
    assert percentile(values, 50) == expected
