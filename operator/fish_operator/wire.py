"""The API server's JSON, as far as the operator reads it: only needed fields, unknown ones ignored. Pure."""

from datetime import datetime
from typing import Annotated, Final, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from fish_operator.view import ObjectKey

Item = TypeVar("Item", bound=BaseModel)


class _Wire(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, alias_generator=to_camel)


def _epoch_s(value: object) -> object:
    return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else value


Time = Annotated[float, BeforeValidator(_epoch_s)]


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, int) else value


Quantity = Annotated[str, BeforeValidator(_as_text)]

_SUFFIXES: Final = {
    **{letter: 1000**power for power, letter in enumerate("kMGTPE", 1)},
    **{f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", 1)},
}


def whole_number(quantity: str) -> int:
    """Return a quantity of what comes in whole pieces, such as GPUs. The API server writes 1000 as 1k."""
    suffix = next((suffix for suffix in _SUFFIXES if quantity.endswith(suffix)), "")
    return int(float(quantity.removesuffix(suffix)) * _SUFFIXES.get(suffix, 1))


class _Metadata(_Wire):
    name: str
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    creation_timestamp: Time = 0.0
    deletion_timestamp: Time | None = None

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(namespace=self.namespace, name=self.name)


class Condition(_Wire):
    """One entry of a status's conditions."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: Time | None = None


class _Running(_Wire):
    started_at: Time | None = None


class _Waiting(_Wire):
    reason: str = ""
    message: str = ""


class _Terminated(_Wire):
    exit_code: int
    reason: str = ""
    message: str = ""
    started_at: Time | None = None
    finished_at: Time | None = None


class _ContainerState(_Wire):
    waiting: _Waiting | None = None
    running: _Running | None = None
    terminated: _Terminated | None = None


class _ContainerStatus(_Wire):
    name: str
    started: bool = False
    state: _ContainerState = _ContainerState()


class _Resources(_Wire):
    limits: dict[str, Quantity] = {}
    requests: dict[str, Quantity] = {}


class Container(_Wire):
    """A container of a pod's spec."""

    resources: _Resources = _Resources()


class _PodSpec(_Wire):
    node_name: str | None = None
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()


class _PodStatus(_Wire):
    phase: str = "Pending"
    reason: str = ""
    pod_ip: str | None = Field(default=None, alias="podIP")
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[_ContainerStatus, ...] = ()


class PodOnWire(_Wire):
    """A pod, as the API server sends it."""

    metadata: _Metadata
    spec: _PodSpec = _PodSpec()
    status: _PodStatus = _PodStatus()


class _Taint(_Wire):
    key: str
    effect: str


class _NodeSpec(_Wire):
    unschedulable: bool = False
    taints: tuple[_Taint, ...] = ()


class _NodeStatus(_Wire):
    capacity: dict[str, Quantity] = {}
    allocatable: dict[str, Quantity] = {}
    conditions: tuple[Condition, ...] = ()


class NodeOnWire(_Wire):
    """A node, as the API server sends it."""

    metadata: _Metadata
    spec: _NodeSpec = _NodeSpec()
    status: _NodeStatus = _NodeStatus()


class CustomOnWire(_Wire):
    """A TTSDeployment or CleaningJob: its spec is read strictly elsewhere, its status was written by us."""

    metadata: _Metadata
    spec: dict[str, object] = {}
    status: object = None


class _List(_Wire):
    items: tuple[dict[str, object], ...] = ()


def read_list(kind: type[Item], body: bytes) -> tuple[Item, ...]:
    """Return the items of a list answer."""
    return tuple(kind.model_validate(item) for item in _List.model_validate_json(body).items)
