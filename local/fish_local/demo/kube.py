"""What the demo reads from the API server, as small records."""

import base64
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self, TypeVar

import httpx
import yaml
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from fish_contracts.labels import API_GROUP, API_VERSION, DRAINING, WORK_CLASS

_OWN_RESOURCES: Final = f"/apis/{API_GROUP}/{API_VERSION}/namespaces/default"


class _Object(BaseModel):
    """JSON as the API writes it; what the demo does not show is ignored."""

    model_config = ConfigDict(alias_generator=to_camel, frozen=True, extra="ignore")


class Load(_Object):
    """Streams over all engines."""

    streams: int = 0
    queued: int = 0


class Decision(_Object):
    """One change of the number of engines."""

    from_replicas: int
    to_replicas: int
    reason: str
    message: str


class Reclaim(_Object):
    """One GPU that went from cleaning to speech, and how long each stage of that took, in seconds."""

    total_seconds: float
    stages: Mapping[str, float]


class VoiceStatus(_Object):
    """Status of a TTSDeployment; all zero until the operator has written it."""

    ready_replicas: int = 0
    desired_replicas: int = 0
    load: Load = Load()
    decisions: tuple[Decision, ...] = ()
    reclaims: tuple[Reclaim, ...] = ()


class Evictions(_Object):
    """Cleaning workers that were made to stop."""

    total: int = 0


class CleaningStatus(_Object):
    """Status of a CleaningJob; all zero until the operator has written it."""

    percent: float = 0
    evictions: Evictions = Evictions()


class _Condition(_Object):
    type: str
    status: str


class _PodStatus(_Object):
    pod_ip: str | None = Field(default=None, alias="podIP")
    phase: str = "Pending"
    conditions: tuple[_Condition, ...] = ()


class _PodMetadata(_Object):
    name: str
    labels: Mapping[str, str] = {}
    deletion_timestamp: str | None = None


class _PodObject(_Object):
    metadata: _PodMetadata
    status: _PodStatus = _PodStatus()


class _PodList(_Object):
    items: tuple[_PodObject, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """One pod, as far as the demo cares."""

    name: str
    labels: Mapping[str, str]
    address: str | None
    phase: str
    is_ready: bool
    is_leaving: bool

    @property
    def takes_streams(self) -> bool:
        """Tell whether an engine in this pod accepts new streams."""
        return self.is_ready and not self.is_leaving and DRAINING not in self.labels and self.address is not None

    @classmethod
    def from_object(cls, pod: _PodObject) -> Self:
        """Read the API's form."""
        return cls(
            name=pod.metadata.name,
            labels=pod.metadata.labels,
            address=pod.status.pod_ip,
            phase=pod.status.phase,
            is_ready=any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions),
            is_leaving=pod.metadata.deletion_timestamp is not None,
        )


def connect(kubeconfig: Path) -> httpx.AsyncClient:
    """Open a client to the API server of this kubeconfig, which must hold a token and the server's CA."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    if "certificate-authority-data" in cluster:
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    else:
        authority = Path(cluster["certificate-authority"]).read_text()
    return httpx.AsyncClient(
        base_url=cluster["server"],
        headers={"authorization": f"Bearer {user['token']}"},
        verify=ssl.create_default_context(cadata=authority),
        timeout=5,
    )


Status = TypeVar("Status", VoiceStatus, CleaningStatus)


@dataclass(frozen=True, slots=True)
class KubeReader:
    """Read-only access to the objects that the demo shows."""

    client: httpx.AsyncClient = field(repr=False)

    async def pods(self, *, namespace: str, selector: str = "") -> Sequence[Pod]:
        """List the pods of a namespace."""
        body = await self._get(f"/api/v1/namespaces/{namespace}/pods", labelSelector=selector)
        return [Pod.from_object(item) for item in _PodList.model_validate_json(body).items]

    async def work_pods(self) -> Sequence[Pod]:
        """List engines and cleaning workers."""
        return await self.pods(namespace="default", selector=WORK_CLASS)

    async def voice(self, name: str) -> VoiceStatus:
        """Return the status of a TTSDeployment."""
        return _status(VoiceStatus, await self._get(f"{_OWN_RESOURCES}/ttsdeployments/{name}"))

    async def cleaning(self, name: str) -> CleaningStatus:
        """Return the status of a CleaningJob."""
        return _status(CleaningStatus, await self._get(f"{_OWN_RESOURCES}/cleaningjobs/{name}"))

    async def _get(self, path: str, **parameters: str) -> bytes:
        response = await self.client.get(path, params=parameters)
        response.raise_for_status()
        return response.content


class _Resource(_Object):
    status: Mapping[str, object] = {}


def _status(kind: type[Status], body: bytes) -> Status:
    return kind.model_validate(_Resource.model_validate_json(body).status)
