"""What the demo reads from the API server, as small records."""

import base64
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self, TypeAlias

import httpx
import yaml

from fish_contracts.labels import API_GROUP, API_VERSION, DRAINING, WORK_CLASS

Json: TypeAlias = Mapping[str, Any]

_OWN_RESOURCES: Final = f"/apis/{API_GROUP}/{API_VERSION}/namespaces/default"


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
    def from_json(cls, raw: Json) -> Self:
        """Read the API's form."""
        status = raw.get("status", {})
        conditions = status.get("conditions", [])
        return cls(
            name=raw["metadata"]["name"],
            labels=raw["metadata"].get("labels", {}),
            address=status.get("podIP"),
            phase=status.get("phase", "Pending"),
            is_ready=any(one["type"] == "Ready" and one["status"] == "True" for one in conditions),
            is_leaving="deletionTimestamp" in raw["metadata"],
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


@dataclass(frozen=True, slots=True)
class KubeReader:
    """Read-only access to the objects that the demo shows."""

    client: httpx.AsyncClient = field(repr=False)

    async def pods(self, *, namespace: str, selector: str = "") -> Sequence[Pod]:
        """List the pods of a namespace."""
        listing = await self._get(f"/api/v1/namespaces/{namespace}/pods", labelSelector=selector)
        return [Pod.from_json(item) for item in listing["items"]]

    async def work_pods(self) -> Sequence[Pod]:
        """List engines and cleaning workers."""
        return await self.pods(namespace="default", selector=WORK_CLASS)

    async def status_of(self, plural: str, name: str) -> Json:
        """Return the status of one of our custom resources; empty until the operator has written it."""
        found = await self._get(f"{_OWN_RESOURCES}/{plural}/{name}")
        status: Json = found.get("status", {})
        return status

    async def _get(self, path: str, **parameters: str) -> Json:
        response = await self.client.get(path, params=parameters)
        response.raise_for_status()
        body: Json = response.json()
        return body
