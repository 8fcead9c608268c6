"""Who may speak: anybody on a private network where no keys are set, else whoever brings a key."""

import hashlib
import ipaddress
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from fish_engine.errors import ExposedWithoutKeys, Unauthorized
from fish_engine.server.errors_http import error_response

_OPEN_PATHS: Final = frozenset({"/v1/health", "/health/live", "/health/ready", "/v1/load", "/v1/models"})
"""What probes, the operator and a client that looks around ask before anybody has a key."""
_SCHEMES: Final = frozenset({"bearer", "token"})


def read_keys(file: Path) -> frozenset[str]:
    """Return the keys of a file: one a line, without empty lines and those that start with #.

    Raises:
        OSError: it cannot be read.
        Unauthorized: it has none, so that nobody could speak.
    """
    lines = (line.strip() for line in file.read_text().splitlines())
    keys = frozenset(line for line in lines if line and not line.startswith("#"))
    if not keys:
        raise Unauthorized(f"{file} has no keys; expected one a line")
    return keys


def check_exposure(address: str, *, has_keys: bool) -> None:
    """Raise `ExposedWithoutKeys` for an address that others than this machine and its private network can reach."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if not has_keys and (ip.is_global or ip.is_unspecified):
        raise ExposedWithoutKeys(
            f"{address} may be reached from anywhere, and no keys are set: give --api-keys-file, "
            "or listen on a loopback or private address"
        )


class KeyGate:
    """Lets through what brings a key, by any of the ways that clients have."""

    def __init__(self, app: ASGIApp, keys: Collection[str]) -> None:
        self._app = app
        # A look-up by digest tells nothing of a key by the time it takes.
        self._digests = frozenset(_digest(key) for key in keys)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401 in the place of the application where no key fits."""
        if scope["type"] not in ("http", "websocket") or scope["path"] in _OPEN_PATHS or self._has_key(scope):
            await self._app(scope, receive, send)
            return
        error = Unauthorized("no valid API key; send Authorization: Bearer KEY, xi-api-key: KEY, or ?api_key=KEY")
        response = error_response(scope["path"], error)
        if scope["type"] == "websocket":
            await WebSocket(scope, receive, send).send_denial_response(response)
        else:
            await response(scope, receive, send)

    def _has_key(self, scope: Scope) -> bool:
        return any(_digest(key) in self._digests for key in _brought_keys(scope))


def _brought_keys(scope: Scope) -> Iterator[str]:
    headers = Headers(scope=scope)
    scheme, _, key = headers.get("authorization", "").partition(" ")
    if scheme.lower() in _SCHEMES:
        yield key.strip()
    yield headers.get("xi-api-key", "")
    yield from parse_qs(scope["query_string"].decode("latin-1")).get("api_key", [])


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode()).digest()


class SingleSlashes:
    """Takes `//v1/tts/live` for `/v1/tts/live`: some clients put a slash after an address that ends with one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on with the path put right."""
        if scope["type"] in ("http", "websocket") and scope["path"].startswith("//"):
            scope = {**scope, "path": "/" + scope["path"].lstrip("/")}
        await self._app(scope, receive, send)
