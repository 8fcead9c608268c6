"""The API server as a few verbs on paths: raw JSON, one session, errors with status. No watching; kopf does that."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Final, Self

import aiohttp
import kopf

from fish_contracts.labels import API_GROUP, API_VERSION
from fish_operator.access import REREAD_AFTER_S
from fish_operator.errors import ApiError
from fish_operator.status_json import Json
from fish_operator.view import ObjectKey

_TIMEOUT: Final = aiohttp.ClientTimeout(total=10, connect=5)
_MERGE: Final = "application/merge-patch+json"
_JSON: Final = "application/json"

PODS: Final = "/api/v1/pods"
NODES: Final = "/api/v1/nodes"


def customs(plural: str, key: ObjectKey | None = None) -> str:
    """Return the path of all custom resources of a kind, or of one."""
    base = f"/apis/{API_GROUP}/{API_VERSION}"
    return f"{base}/namespaces/{key.namespace}/{plural}/{key.name}" if key else f"{base}/{plural}"


def pods_in(namespace: str) -> str:
    """Return the path where pods of a namespace are created."""
    return f"/api/v1/namespaces/{namespace}/pods"


def pod(key: ObjectKey) -> str:
    """Return the path of one pod."""
    return f"{pods_in(key.namespace)}/{key.name}"


class ApiServer:
    """A session with the API server."""

    def __init__(self, connect: Callable[[], kopf.ConnectionInfo]) -> None:
        self._connect = connect
        self._connection = connect()
        self._read_at_s = time.monotonic()
        ssl = self._connection.as_ssl_context()
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=ssl), timeout=_TIMEOUT)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def get(self, path: str) -> bytes:
        """Return the body of an object or a list."""
        return await self._request("GET", path)

    async def create(self, path: str, body: Mapping[str, Json]) -> None:
        """Create an object."""
        await self._request("POST", path, body)

    async def patch(self, path: str, body: Mapping[str, Json]) -> None:
        """Merge into an object."""
        await self._request("PATCH", path, body, content_type=_MERGE)

    async def delete(self, path: str, *, uid: str, grace_s: int | None = None) -> None:
        """Delete just the object with this uid; without `grace_s`, with the grace that the object itself names."""
        grace: dict[str, Json] = {} if grace_s is None else {"gracePeriodSeconds": grace_s}
        await self._request("DELETE", path, {"preconditions": {"uid": uid}, **grace})

    async def evict(self, key: ObjectKey, *, uid: str) -> None:
        """Evict just the pod with this uid, with its own grace; a disruption budget may refuse."""
        await self._request(
            "POST",
            f"{pod(key)}/eviction",
            {
                "apiVersion": "policy/v1",
                "kind": "Eviction",
                "metadata": {"name": key.name, "namespace": key.namespace},
                "deleteOptions": {"preconditions": {"uid": uid}},
            },
        )

    async def _request(
        self, verb: str, path: str, body: Mapping[str, Json] | None = None, *, content_type: str = _JSON
    ) -> bytes:
        headers = {"Content-Type": content_type, "Accept": _JSON, **self._credentials()}
        data = None if body is None else json.dumps(body)
        try:
            async with self._session.request(
                verb, self._connection.server + path, data=data, headers=headers
            ) as response:
                answer = await response.read()
        except (aiohttp.ClientError, TimeoutError, asyncio.IncompleteReadError) as error:
            raise ApiError(verb=verb, path=path, status=0, message=repr(error)) from error
        if response.status >= 400:
            raise ApiError(verb=verb, path=path, status=response.status, message=_message(answer))
        return answer

    def _credentials(self) -> dict[str, str]:
        if time.monotonic() - self._read_at_s > REREAD_AFTER_S:
            self._connection = self._connect()
            self._read_at_s = time.monotonic()
        return self._connection.as_http_headers()


def _message(answer: bytes) -> str:
    try:
        status = json.loads(answer)
    except ValueError:
        return answer[:200].decode(errors="replace")
    return str(status.get("message", status)) if isinstance(status, dict) else str(status)
