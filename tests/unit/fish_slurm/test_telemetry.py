"""The filler's numbers, and that alerts ask for series that exist."""

import re

import pytest
import yaml
from prometheus_client import CollectorRegistry

from fish_contracts.metrics import all_families
from fish_slurm.brake import Memory
from fish_slurm.decide import Plan, Submit
from fish_slurm.telemetry import Telemetry
from fish_slurm.view import Node, Phase, RunSummary


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def telemetry(registry, limits) -> Telemetry:
    return Telemetry(registry, limits())


def plan(idle_gpus: int = 0, backlog_workers: int = 1) -> Plan:
    return Plan(
        actions=(), memory=Memory(strikes={1: 2}), idle_gpus=idle_gpus, backlog_workers=backlog_workers, stopped={}
    )


def test_gpus_are_told_apart_by_what_they_do(telemetry, registry, view, cleaning, training):
    nodes = (
        Node(name="n1", gpus=8, used_gpus=6, takes_work=True, reason=""),
        Node(name="n2", gpus=8, used_gpus=0, takes_work=False, reason="Kill task failed"),
    )
    jobs = (training(1, gpus=4, phase=Phase.RUNNING), cleaning(2, phase=Phase.RUNNING))
    telemetry.saw(view(*jobs, nodes=nodes), plan())
    states = {state: registry.get_sample_value("fish_slurm_gpus", {"state": state}) for state in _STATES}
    assert states == {"training": 4, "cleaning": 1, "inference": 0, "idle": 2, "out": 8, "lost": 1}
    assert registry.get_sample_value("fish_slurm_out_nodes", {"reason": "unkillable"}) == 1


def test_idle_gpu_seconds_and_the_refill_are_counted_while_there_is_work(telemetry, registry, view):
    telemetry.saw(view(now_s=100.0), plan())
    telemetry.saw(view(now_s=101.0), plan(idle_gpus=3))
    telemetry.saw(view(now_s=103.0), plan(idle_gpus=2))
    telemetry.saw(view(now_s=104.0), plan())
    telemetry.saw(view(now_s=105.0), plan(idle_gpus=8, backlog_workers=0))
    assert registry.get_sample_value("fish_slurm_idle_gpu_seconds_total") == 3 * 1 + 2 * 2
    assert registry.get_sample_value("fish_slurm_refill_seconds_sum") == 3


def test_a_preemption_gives_the_checkpoint_time_or_counts_as_silent(telemetry, registry, view, cleaning):
    telemetry.saw(view(cleaning(1, phase=Phase.RUNNING), cleaning(2, phase=Phase.RUNNING)), plan())
    said = {(1, 0): RunSummary(is_complete=False, items_finished=1, stop_s=0.3)}
    telemetry.saw(view(cleaning(1, restarts=1), cleaning(2, restarts=1), summaries=said), plan())
    assert registry.get_sample_value("fish_slurm_preemptions_total") == 2
    assert registry.get_sample_value("fish_slurm_checkpoint_seconds_sum") == 0.3
    assert registry.get_sample_value("fish_slurm_silent_runs_total") == 1


def test_reclaim_is_the_wait_of_training_that_starts_while_cleaning_runs(telemetry, registry, view, cleaning, training):
    full = cleaning(1, phase=Phase.RUNNING)
    telemetry.saw(view(full, training(2)), plan())
    telemetry.saw(view(full, training(2, phase=Phase.RUNNING, submitted_at_s=500, started_at_s=501)), plan())
    telemetry.saw(view(full, training(2, phase=Phase.RUNNING, submitted_at_s=500, started_at_s=501)), plan())
    assert registry.get_sample_value("fish_slurm_reclaim_seconds_count") == 1
    assert registry.get_sample_value("fish_slurm_reclaim_seconds_sum") == 1


def test_actions_and_errors_are_counted(telemetry, registry):
    telemetry.did(Submit(name="demo", slot=0))
    telemetry.failed()
    telemetry.looped(0.02)
    assert registry.get_sample_value("fish_slurm_actions_total", {"action": "Submit"}) == 1
    assert registry.get_sample_value("fish_slurm_errors_total") == 1
    assert registry.get_sample_value("fish_slurm_loop_seconds_count") == 1


def test_alerts_ask_for_series_that_exist(slurm_folder):
    names = {family.name.removesuffix("_total") for family in all_families()}
    rules = yaml.safe_load((slurm_folder / "conf/fish-alerts.yaml").read_text())["groups"][0]["rules"]
    assert len(rules) >= 5
    for rule in rules:
        asked = re.findall(r"fish_\w+", rule["expr"])
        assert asked, rule
        for name in asked:
            assert re.sub(r"_(total|bucket|sum|count)$", "", name) in names, name


_STATES = ("training", "cleaning", "inference", "idle", "out", "lost")
