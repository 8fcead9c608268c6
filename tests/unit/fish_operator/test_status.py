"""What is written to statuses, and how often."""

from dataclasses import replace

from inline_snapshot import snapshot

from fish_operator.plan import WriteDeploymentStatus, WriteJobStatus
from fish_operator.status import (
    Condition,
    DecisionEntry,
    DeploymentStatus,
    Evictions,
    JobStatus,
    Load,
    ReclaimEntry,
    ReclaimStages,
    Units,
    merge_conditions,
)
from fish_operator.status_json import changed_fields, read_status, write_status
from fish_operator.status_pace import StatusPace

FULL = DeploymentStatus(
    observed_generation=2,
    desired_replicas=3,
    load=Load(streams=5, queued=1),
    decisions=(DecisionEntry(time="t", from_replicas=1, to_replicas=3, reason="DemandRose", message="m"),),
    reclaims=(
        ReclaimEntry(
            pod="p",
            pod_uid="u",
            victim="w",
            started_at=1.5,
            stages=ReclaimStages(decide=0, free=1, create=0, schedule=0, start=1, ready=2),
            total_seconds=4.0,
        ),
    ),
    conditions=(Condition(type="Ready", status="True", reason="EnoughEngines", message="", last_transition_time="t"),),
)


def test_a_status_reads_back_as_it_was_written():
    assert read_status(DeploymentStatus, write_status(FULL)) == FULL


def test_field_names_are_those_of_the_crd():
    assert write_status(replace(FULL, conditions=(), reclaims=())) == snapshot(
        {
            "observedGeneration": 2,
            "desiredReplicas": 3,
            "replicas": 0,
            "readyReplicas": 0,
            "pendingReplicas": 0,
            "drainingReplicas": 0,
            "selector": "",
            "load": {"streams": 5, "queued": 1},
            "decisions": [{"time": "t", "fromReplicas": 1, "toReplicas": 3, "reason": "DemandRose", "message": "m"}],
            "reclaims": [],
            "conditions": [],
        }
    )


def test_only_what_changed_is_sent_and_what_is_gone_is_taken_away():
    after = replace(FULL, load=None, ready_replicas=1)
    assert changed_fields(FULL, after) == {"readyReplicas": 1, "load": None}


def test_the_first_status_has_its_zeros_too():
    assert changed_fields(JobStatus(), JobStatus(observed_generation=1))["evictions"] == {
        "total": 0,
        "checkpointed": 0,
        "forced": 0,
    }


def test_a_condition_keeps_its_time_while_its_status_stays():
    before = (Condition(type="Ready", status="True", reason="A", message="a", last_transition_time="then"),)
    same = Condition(type="Ready", status="True", reason="B", message="b")
    other = Condition(type="Ready", status="False", reason="B", message="b")
    assert merge_conditions(before, [same], now_s=0)[0].last_transition_time == "then"
    assert merge_conditions(before, [other], now_s=0)[0].last_transition_time == "1970-01-01T00:00:00Z"


def write(make, before: DeploymentStatus, after: DeploymentStatus, name: str = "voice") -> WriteDeploymentStatus:
    return WriteDeploymentStatus(key=make.key(name), before=before, status=after)


def test_what_did_not_change_is_not_written(make):
    assert StatusPace().due([write(make, FULL, FULL)], at_s=0.0) == []


def test_a_change_of_substance_is_written_at_once_every_time(make):
    pace = StatusPace()
    for replicas in range(3):
        change = write(make, FULL, replace(FULL, ready_replicas=replicas + 1))
        assert pace.due([change], at_s=0.1 * replicas) == [change]


def test_numbers_that_always_move_share_two_writes_a_second(make):
    pace = StatusPace()
    written = 0
    for tenth in range(600):
        changes = [
            write(make, FULL, replace(FULL, load=Load(streams=tenth, queued=0)), name=f"voice-{n}") for n in range(50)
        ]
        written += len(pace.due(changes, at_s=tenth / 10))
    assert written <= 2 * 60 + 50


def test_progress_of_a_job_is_paced_and_its_evictions_are_not(make):
    pace, before = StatusPace(), JobStatus(units=Units(total=10, committed=1))
    job = make.key("librivox")
    moved = WriteJobStatus(key=job, before=before, status=replace(before, units=Units(total=10, committed=2)))
    evicted = WriteJobStatus(key=job, before=before, status=replace(before, evictions=Evictions(total=1)))
    assert pace.due([moved], at_s=0.0) == [moved]
    assert pace.due([moved], at_s=0.5) == []
    assert pace.due([evicted], at_s=0.5) == [evicted]
