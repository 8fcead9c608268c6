"""Manifests of the pods that the operator owns. Pure.

One container a pod, restarted by the operator and never in place: a new pod shows up in the API, with a reason.
"""

from dataclasses import dataclass
from typing import Final

from fish_contracts.labels import (
    API_GROUP,
    API_VERSION,
    ENGINE_CONTAINER,
    GPU_RESOURCE,
    OWNER,
    WORK_CLASS,
    WORKER_CONTAINER,
)
from fish_contracts.priority import WorkClass
from fish_contracts.reports import HTTP_PORT, LOAD_PATH, METRICS_PORT
from fish_operator.notes import FAILURES, RECLAIM, write_note
from fish_operator.plan import CreateEngine, CreateWorker
from fish_operator.spec import AutoScaling, PodSpec
from fish_operator.status_json import Json

_HEALTH_PATH: Final = "/v1/health"
_ADDRESS_ARGS: Final = (
    "--host",
    "$(POD_IP)",
    "--port",
    str(HTTP_PORT),
    "--metrics-port",
    str(METRICS_PORT),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Images:
    """What runs when a custom resource names no image."""

    engine: str
    cleaning: str


def pod_manifest(action: CreateEngine | CreateWorker, images: Images) -> dict[str, Json]:
    """Return the pod that an action asks for."""
    match action:
        case CreateEngine():
            return _engine_pod(action, images)
        case CreateWorker():
            return _worker_pod(action, images)


def _engine_pod(action: CreateEngine, images: Images) -> dict[str, Json]:
    spec = action.spec
    streams = spec.scaling.streams_per_replica if isinstance(spec.scaling, AutoScaling) else None
    args = ["serve", "--checkpoint", _local_path(spec.model_source), *_ADDRESS_ARGS]
    args += ["--max-streams", str(streams)] if streams else []
    container = {
        **_container(ENGINE_CONTAINER, spec.pod, spec.pod.image or images.engine, [*args, *spec.pod.args]),
        # Starting is slow and may be; once it serves, it is asked every second, since routers wait for the answer.
        "startupProbe": {**_probe(_HEALTH_PATH, period_s=1), "failureThreshold": max(1, int(spec.startup_timeout_s))},
        "readinessProbe": {**_probe(_HEALTH_PATH, period_s=1), "failureThreshold": 2},
        # Not the health path: that one says no while draining, and draining must not be cut short.
        "livenessProbe": {**_probe(LOAD_PATH, period_s=10), "timeoutSeconds": 5, "failureThreshold": 6},
    }
    notes: dict[str, Json] = {RECLAIM: write_note(action.note)} if action.note else {}
    return _pod(action, "TTSDeployment", WorkClass.INFERENCE, container, notes)


def _worker_pod(action: CreateWorker, images: Images) -> dict[str, Json]:
    spec = action.spec
    args = ["run", "--input", spec.input_uri, "--output", spec.output_uri, "--recipe", spec.recipe, *_ADDRESS_ARGS]
    image = spec.pod.image or images.cleaning
    container = _container(WORKER_CONTAINER, spec.pod, image, [*args, *spec.pod.args])
    return _pod(action, "CleaningJob", WorkClass.CLEANING, container, {})


def _local_path(source: str) -> str:
    return source.removeprefix("file://")


def _container(name: str, spec: PodSpec, image: str, args: list[str]) -> dict[str, Json]:
    gpus = str(spec.gpus)
    requests = {GPU_RESOURCE: gpus, "cpu": spec.cpu, "memory": spec.memory}
    return {
        "name": name,
        "image": image,
        "args": list(args),
        "env": [
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            *_pairs(spec),
        ],
        "ports": [
            {"name": "http", "containerPort": HTTP_PORT},
            {"name": "metrics", "containerPort": METRICS_PORT},
        ],
        "resources": {
            "requests": {key: value for key, value in requests.items() if value},
            "limits": {GPU_RESOURCE: gpus},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }


def _pairs(spec: PodSpec) -> list[Json]:
    return [{"name": key, "value": value} for key, value in spec.env]


def _probe(path: str, *, period_s: int) -> dict[str, Json]:
    return {"httpGet": {"path": path, "port": HTTP_PORT}, "periodSeconds": period_s, "timeoutSeconds": 1}


def _pod(
    action: CreateEngine | CreateWorker,
    kind: str,
    work_class: WorkClass,
    container: dict[str, Json],
    notes: dict[str, Json],
) -> dict[str, Json]:
    spec = action.spec.pod
    failures: dict[str, Json] = {FAILURES: str(action.failures)} if action.failures else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": action.name,
            "namespace": action.owner.namespace,
            "labels": _labels(action, work_class, container["name"]),
            "annotations": {**notes, **failures},
            "ownerReferences": [_owner(action, kind)],
        },
        "spec": {
            "restartPolicy": "Never",
            "priorityClassName": spec.priority_class,
            "terminationGracePeriodSeconds": max(1, round(spec.grace_s)),
            "automountServiceAccountToken": False,
            "tolerations": [{"key": GPU_RESOURCE, "operator": "Exists", "effect": "NoSchedule"}],
            "containers": [container],
        },
    }


def _labels(action: CreateEngine | CreateWorker, work_class: WorkClass, role: Json) -> dict[str, Json]:
    return {
        WORK_CLASS: work_class.value,
        OWNER: action.owner.name,
        "app.kubernetes.io/name": role,
        "app.kubernetes.io/instance": action.owner.name,
        "app.kubernetes.io/managed-by": "fish-tts",
    }


def _owner(action: CreateEngine | CreateWorker, kind: str) -> dict[str, Json]:
    return {
        "apiVersion": f"{API_GROUP}/{API_VERSION}",
        "kind": kind,
        "name": action.owner.name,
        "uid": action.owner_uid,
        "controller": True,
    }
