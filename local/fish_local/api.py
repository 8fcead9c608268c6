"""The few questions that `up` and `status` ask the API server, and the answers as records."""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Self

import httpx
from pydantic import BaseModel, Field

from fish_contracts import labels
from fish_local.errors import CommandFailed

_TIMEOUT_S: Final = 10.0


class _Meta(BaseModel):
    name: str
    namespace: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class _Condition(BaseModel):
    type: str
    status: str


class _NodeStatus(BaseModel):
    conditions: list[_Condition] = []
    allocatable: dict[str, str] = {}


class _Node(BaseModel):
    metadata: _Meta
    status: _NodeStatus


class _PodSpec(BaseModel):
    node: Annotated[str | None, Field(alias="nodeName")] = None


class _PodStatus(BaseModel):
    phase: str = "Unknown"
    ip: Annotated[str | None, Field(alias="podIP")] = None
    conditions: list[_Condition] = []


class _Pod(BaseModel):
    metadata: _Meta
    spec: _PodSpec
    status: _PodStatus


class _NodeList(BaseModel):
    items: list[_Node]


class _PodList(BaseModel):
    items: list[_Pod]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """A node as the API server knows it."""

    name: str
    is_ready: bool
    gpus: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PodView:
    """A pod as the API server knows it. `work_class` and `gpu_ids` are empty for pods that have none."""

    namespace: str
    name: str
    node: str | None
    phase: str
    is_ready: bool
    ip: str | None
    work_class: str
    gpu_ids: tuple[str, ...]


class ApiServer:
    """A connection to one cluster's API server, as its administrator."""

    def __init__(self, *, url: str, authority: Path, token: str) -> None:
        self._client = httpx.Client(
            base_url=url,
            verify=ssl.create_default_context(cafile=authority),
            headers={"Authorization": f"Bearer {token}"},
            timeout=_TIMEOUT_S,
            trust_env=False,  # a proxy does not know our loopback addresses
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._client.close()

    def answers(self, url: str) -> bool:
        """Tell whether a GET gives 200: a component's health, by URL, or an object of the API, by path."""
        try:
            return self._client.get(url).status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    def nodes(self) -> list[NodeView]:
        """Return all nodes."""
        found = _NodeList.model_validate_json(self._get("/api/v1/nodes"))
        return [
            NodeView(
                name=node.metadata.name,
                is_ready=_is_true("Ready", node.status.conditions),
                gpus=int(node.status.allocatable.get(labels.GPU_RESOURCE, "0")),
            )
            for node in found.items
        ]

    def pods(self) -> list[PodView]:
        """Return the pods of all namespaces."""
        found = _PodList.model_validate_json(self._get("/api/v1/pods"))
        return [
            PodView(
                namespace=pod.metadata.namespace,
                name=pod.metadata.name,
                node=pod.spec.node,
                phase=pod.status.phase,
                is_ready=_is_true("Ready", pod.status.conditions),
                ip=pod.status.ip,
                work_class=pod.metadata.labels.get(labels.WORK_CLASS, ""),
                gpu_ids=tuple(filter(None, pod.metadata.annotations.get(labels.GPU_IDS, "").split(","))),
            )
            for pod in found.items
        ]

    def _get(self, path: str) -> bytes:
        try:
            return self._client.get(path).raise_for_status().content
        except httpx.HTTPError as error:
            raise CommandFailed(f"GET {path} from the API server failed: {error}") from error


def _is_true(kind: str, conditions: list[_Condition]) -> bool:
    return any(condition.type == kind and condition.status == "True" for condition in conditions)
