"""The API server's JSON is read into the right records."""

import json

import pytest

from fish_contracts.priority import WorkClass
from fish_operator.reading import departed_view, deployment_view, node_view, pod_view, pods_on_gpus
from fish_operator.spec import SpecProblem
from fish_operator.view import PodStage
from fish_operator.wire import CustomOnWire, NodeOnWire, PodOnWire, read_list, whole_number

LABELS = {"fish-tts.io/class": "inference", "fish-tts.io/owner": "voice"}


def pod(*, labels: dict[str, str] | None = None, node: str | None = "node-0", **status: object) -> PodOnWire:
    deleted = status.pop("deleted", None)
    return PodOnWire.model_validate(
        {
            "metadata": {
                "name": "voice-engine-0",
                "namespace": "default",
                "uid": "u",
                "labels": LABELS if labels is None else labels,
                "creationTimestamp": "2026-11-29T10:00:00Z",
                **({"deletionTimestamp": deleted} if deleted else {}),
            },
            "spec": {
                "nodeName": node,
                "containers": [{"name": "engine", "resources": {"requests": {"nvidia.com/gpu": "2"}}}],
            },
            "status": status,
        }
    )


def running(*, started: bool = False, ready: str = "False") -> dict[str, object]:
    state = {"running": {"startedAt": "2026-11-29T10:00:01Z"}}
    return {
        "phase": "Running",
        "containerStatuses": [{"name": "engine", "started": started, "state": state}],
        "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": "2026-11-29T10:00:05Z"}],
    }


@pytest.mark.parametrize(
    ("raw", "stage"),
    [
        (pod(node=None, phase="Pending"), PodStage.UNSCHEDULED),
        (pod(phase="Pending"), PodStage.STARTING),
        (pod(**running()), PodStage.STARTING),
        (pod(**running(started=True, ready="True")), PodStage.READY),
        (pod(**running(started=True)), PodStage.UNREADY),
        (pod(**running(started=True, ready="True"), deleted="2026-11-29T10:01:00Z"), PodStage.TERMINATING),
        (pod(phase="Failed"), PodStage.ENDED),
        (pod(phase="Succeeded", deleted="2026-11-29T10:01:00Z"), PodStage.ENDED),
    ],
)
def test_an_engine_is_in_the_stage_that_its_status_says(raw: PodOnWire, stage: PodStage):
    assert pod_view(raw).stage is stage


def test_what_keeps_a_pod_from_starting_is_read():
    waiting = {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}
    assert pod_view(pod(phase="Pending", containerStatuses=[{"name": "engine", "state": waiting}])).waiting == (
        "ErrImagePull: no such image"
    )


def test_a_worker_is_ready_when_its_process_runs():
    labels = {"fish-tts.io/class": "cleaning", "fish-tts.io/owner": "librivox"}
    assert pod_view(pod(labels=labels, **running())).stage is PodStage.READY


def test_a_pod_of_somebody_else_counts_only_for_its_gpus():
    view = pod_view(pod(labels={}, phase="Running"))
    assert (view.work_class, view.owner, view.gpus) == (None, None, 2)


@pytest.mark.parametrize(
    ("quantity", "number"), [("0", 0), ("8", 8), ("1k", 1000), ("2Ki", 2048), ("1e3", 1000), ("3T", 3 * 10**12)]
)
def test_a_whole_number_is_read_in_every_form_that_the_api_server_writes(quantity: str, number: int):
    assert whole_number(quantity) == number


def test_gpus_of_init_containers_count_as_the_scheduler_counts_them():
    gpus = [{"resources": {"limits": {"nvidia.com/gpu": number}}} for number in ("1", "4", "2")]
    spec = {"containers": gpus[:1], "initContainers": gpus[1:]}
    assert pod_view(PodOnWire.model_validate({"metadata": {"name": "p"}, "spec": spec})).gpus == 4


def test_a_count_of_failures_that_is_none_counts_as_zero():
    edited = {"metadata": {"name": "p", "annotations": {"fish-tts.io/failures": "many"}}}
    assert pod_view(PodOnWire.model_validate(edited)).failures == 0


def test_an_end_says_exit_code_and_whether_somebody_asked_for_it():
    terminated = {"exitCode": 75, "reason": "Error", "finishedAt": "2026-11-29T10:02:00Z"}
    view = pod_view(
        pod(
            phase="Failed",
            containerStatuses=[{"name": "worker", "state": {"terminated": terminated}}],
            conditions=[{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}],
            deleted="2026-11-29T10:01:59Z",
        )
    )
    assert view.end is not None
    assert (view.end.exit_code, view.end.was_deleted, view.end.disruption) == (75, True, "PreemptionByScheduler")
    assert view.end.finished_at_s - view.created_at_s == 120.0


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("", ""),
        ("Traceback\n  File\nValueError: no voice\n", "ValueError: no voice"),
        ('{"outcome": "failed", "error": "no recordings in /in"}\n', "no recordings in /in"),
        ('{"outcome": "complete", "error": null}', ""),
        ("12", ""),
    ],
)
def test_last_words_are_one_line_for_people(message: str, told: str):
    terminated = {"exitCode": 1, "message": message}
    view = pod_view(pod(phase="Failed", containerStatuses=[{"name": "c", "state": {"terminated": terminated}}]))
    assert view.end is not None
    assert view.end.message == told


def test_a_pod_that_vanishes_has_ended_somehow():
    vanished = departed_view(pod(**running()), is_deleted=True, now_s=7.0)
    assert vanished is not None
    assert vanished.stage is PodStage.ENDED
    assert vanished.end is not None
    assert vanished.end.exit_code is None


def test_a_pod_that_still_runs_has_not_departed():
    assert departed_view(pod(**running()), is_deleted=False, now_s=7.0) is None


def node(*, ready: str = "True", allocatable: str = "4", **spec: object) -> NodeOnWire:
    return NodeOnWire.model_validate(
        {
            "metadata": {"name": "node-0"},
            "spec": spec,
            "status": {
                "capacity": {"nvidia.com/gpu": "4", "cpu": 8},
                "allocatable": {"nvidia.com/gpu": allocatable},
                "conditions": [{"type": "Ready", "status": ready}],
            },
        }
    )


@pytest.mark.parametrize(
    ("raw", "gpus", "unhealthy", "schedulable"),
    [
        (node(), 4, 0, True),
        (node(allocatable="3"), 3, 1, True),
        (node(ready="Unknown"), 0, 4, False),
        (node(unschedulable=True), 4, 0, False),
        (node(taints=[{"key": "maintenance", "effect": "NoSchedule"}]), 4, 0, False),
        (node(taints=[{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]), 4, 0, True),
        (node(taints=[{"key": "slow", "effect": "PreferNoSchedule"}]), 4, 0, True),
    ],
)
def test_a_node_offers_what_is_healthy_and_open(raw: NodeOnWire, gpus: int, unhealthy: int, schedulable: bool):
    view = node_view(raw)
    assert (view.gpus, view.unhealthy_gpus, view.is_schedulable) == (gpus, unhealthy, schedulable)


def test_pods_of_a_node_that_does_not_answer_are_lost():
    (lost,) = pods_on_gpus([pod(**running(started=True, ready="True"))], [node_view(node(ready="Unknown"))])
    (there,) = pods_on_gpus([pod(**running(started=True, ready="True"))], [node_view(node())])
    (ended,) = pods_on_gpus([pod(phase="Failed")], [node_view(node(ready="Unknown"))])
    assert (lost.stage, there.stage, ended.stage) == (PodStage.LOST, PodStage.READY, PodStage.ENDED)


def test_a_list_is_read_as_a_whole():
    body = json.dumps({"items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]}).encode()
    assert [item.metadata.name for item in read_list(NodeOnWire, body)] == ["a", "b"]


def test_a_spec_that_an_older_crd_let_through_becomes_a_problem():
    view = deployment_view(
        CustomOnWire.model_validate({"metadata": {"name": "v", "namespace": "d"}, "spec": {"model": {}}})
    )
    assert isinstance(view.spec, SpecProblem)
    assert "spec.model.source" in view.spec.message


def test_a_status_that_somebody_broke_counts_as_never_written():
    view = deployment_view(
        CustomOnWire.model_validate({"metadata": {"name": "v"}, "status": {"desiredReplicas": "many"}})
    )
    assert view.status.desired_replicas is None


def test_classes_on_the_wire_are_those_of_the_rule():
    assert pod_view(pod()).work_class is WorkClass.INFERENCE
