"""Requests to one bucket: bounded in time, repeated while that may help, explained when it may not.

obstore's own repeats are off. After a lost reply they would report our own write as somebody else's; here a repeated write
that finds its name taken reads back what lies there and compares before it calls that a loss.
"""

import asyncio
import hashlib
import re
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final, TypeVar

import obstore
from obstore.store import MemoryStore, S3Store

from fish_cleaning.errors import BadInput, BadSetting, CleaningError, StoreFailed
from fish_cleaning.network_thread import wait_for
from fish_cleaning.storage_faults import STORAGE_ERRORS, Fault, FaultKind, Garbled, fault_of

if TYPE_CHECKING:  # declared in stubs only
    from obstore import ObjectMeta, PutMode
    from obstore.store import S3Config

Result = TypeVar("Result")

_PARALLEL_REQUESTS: Final = 16
_SLOWEST_BYTES_PER_S: Final = 1_000_000  # a transfer below this counts as stuck
_LONGEST_TRANSFER: Final = timedelta(hours=1)  # obstore's own bound, which must not be the tighter one


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long requests are waited for and repeated."""

    total_s: float = 60.0
    """Longer than a server takes to start again."""
    attempt_s: float = 5.0
    """For an answer to begin, and for small ones to end."""
    first_pause_s: float = 0.05
    longest_pause_s: float = 1.0
    leaving_s: float = 0.25
    """For everything after a stop signal, together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    """An object and its version."""

    data: bytes
    e_tag: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """An object as a listing shows it. `key` is relative to the location."""

    key: str
    e_tag: str
    size_bytes: int
    written_at_s: float


class Bucket:
    """A place in a bucket: names are relative to its prefix."""

    def __init__(self, objects: S3Store | MemoryStore, *, uri: str, patience: Patience | None = None) -> None:
        self.uri = uri
        self._objects = objects
        self._patience = patience or Patience()
        self._has_answered = False
        self._leave_by_s = float("inf")

    def hasten(self) -> None:
        """Give all requests from now on a moment together: the process is leaving."""
        self._leave_by_s = time.monotonic() + self._patience.leaving_s

    def get(self, key: str) -> Blob | None:
        """Return an object, or None where there is none."""
        return wait_for(self._read(key))

    def get_all(self, keys: Iterable[str]) -> list[Blob | None]:
        """Return many objects at once, in the order of their names."""
        return wait_for(_a_few_at_once(self._read, keys))

    def delete_all(self, keys: Iterable[str]) -> None:
        """Delete many objects; those that are gone already are no error."""

        async def delete(key: str) -> None:
            await self._asked(
                key, lambda _: obstore.delete_async(self._objects, key), attempt_s=self._patience.attempt_s
            )

        wait_for(_a_few_at_once(delete, keys))

    def folder(self, prefix: str) -> list[str]:
        """Return the last parts of the names directly below a prefix, of objects and of folders, sorted."""

        async def ask(_: bool) -> list[str]:
            found = await obstore.list_with_delimiter_async(self._objects, prefix)
            paths = [*found["common_prefixes"], *(meta["path"] for meta in found["objects"])]
            return sorted(path.rpartition("/")[2] for path in paths)

        return wait_for(self._asked(prefix, ask, attempt_s=self._patience.total_s))

    def walk(self) -> list[Listed]:
        """Return every object at any depth."""

        async def ask(_: bool) -> list[Listed]:
            found = await obstore.list(self._objects).collect_async()
            return [_listed(meta) for meta in found]

        return wait_for(self._asked("", ask, attempt_s=self._patience.total_s))

    def put(self, key: str, data: bytes) -> None:
        """Write an object, whether or not one is there."""

        async def ask(_: bool) -> None:
            await obstore.put_async(self._objects, key, data, use_multipart=False)

        wait_for(self._asked(key, ask, attempt_s=self._attempt_s(len(data))))

    def put_checked(self, key: str, data: bytes) -> None:
        """Write an object of which every writer writes the same, and make sure that it lies there whole."""

        async def ask(_: bool) -> None:
            result = await obstore.put_async(self._objects, key, data, use_multipart=False)
            # An e_tag is the MD5 of the object, or else tells nothing.
            e_tag = (result["e_tag"] or "").strip('"')
            if e_tag != hashlib.md5(data, usedforsecurity=False).hexdigest() and not await self._holds(key, data):
                raise Garbled("the object did not arrive as it was sent")

        wait_for(self._asked(key, ask, attempt_s=2 * self._attempt_s(len(data))))

    def create(self, key: str, data: bytes) -> bool:
        """Write an object where none is; False where one is already."""
        return self._put_if(key, data, mode="create")

    def swap(self, key: str, data: bytes, *, e_tag: str) -> bool:
        """Write an object over this very version of it; False where it has changed."""
        return self._put_if(key, data, mode={"e_tag": e_tag})

    def _put_if(self, key: str, data: bytes, *, mode: "PutMode") -> bool:
        async def ask(is_repeat: bool) -> bool:
            try:
                await obstore.put_async(self._objects, key, data, mode=mode, use_multipart=False)
            except STORAGE_ERRORS as error:
                if fault_of(error).kind is not FaultKind.TAKEN:
                    raise
                # What lies there may be our own, from an attempt whose answer was lost.
                return is_repeat and await self._holds(key, data)
            return True

        return wait_for(self._asked(key, ask, attempt_s=2 * self._attempt_s(len(data))))

    async def _read(self, key: str) -> Blob | None:
        return await self._asked(key, lambda _: self._get(key), attempt_s=self._patience.total_s)

    async def _get(self, key: str) -> Blob | None:
        try:
            async with asyncio.timeout(self._patience.attempt_s):
                result = await obstore.get_async(self._objects, key)
        except STORAGE_ERRORS as error:
            if fault_of(error).kind is FaultKind.ABSENT:
                return None
            raise
        async with asyncio.timeout(self._attempt_s(result.meta["size"])):
            data = bytes(await result.bytes_async())
        return Blob(data=data, e_tag=result.meta["e_tag"] or "")

    async def _holds(self, key: str, data: bytes) -> bool:
        blob = await self._get(key)
        return blob is not None and blob.data == data

    def _attempt_s(self, size_bytes: int) -> float:
        return self._patience.attempt_s + size_bytes / _SLOWEST_BYTES_PER_S

    async def _asked(self, key: str, request: Callable[[bool], Awaitable[Result]], *, attempt_s: float) -> Result:
        """Make a request until it is answered. It is told whether an earlier attempt may have worked after all."""
        give_up_at_s = time.monotonic() + self._patience.total_s
        pause_s = self._patience.first_pause_s
        is_repeat = False
        while True:
            left_s = min(give_up_at_s, self._leave_by_s) - time.monotonic()
            try:
                async with asyncio.timeout(max(0.0, min(attempt_s, left_s))):
                    result = await request(is_repeat)
            except STORAGE_ERRORS as error:
                fault = fault_of(error)
                if not self._is_worth_repeating(fault) or left_s <= pause_s:
                    raise self._explained(key, fault) from error
            else:
                self._has_answered = True
                return result
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, self._patience.longest_pause_s)
            is_repeat = True

    def _is_worth_repeating(self, fault: Fault) -> bool:
        is_outage = fault.kind is FaultKind.SETTING_AT_FIRST and self._has_answered
        return fault.kind is FaultKind.PASSING or is_outage

    def _explained(self, key: str, fault: Fault) -> CleaningError:
        place = f"{self.uri}/{key}".rstrip("/")
        match fault.kind:
            case FaultKind.SETTING | FaultKind.SETTING_AT_FIRST if not self._has_answered:
                return BadSetting(f"{place}: {fault.text}")
            case FaultKind.UNUSABLE | FaultKind.ABSENT | FaultKind.TAKEN:
                return BadInput(f"{place}: {fault.text}")
            case _:
                return StoreFailed(
                    f"{place}: {fault.text}; everything committed so far is safe, start again to continue"
                )


async def _a_few_at_once(request: Callable[[str], Awaitable[Result]], keys: Iterable[str]) -> list[Result]:
    slots = asyncio.Semaphore(_PARALLEL_REQUESTS)

    async def take_turn(key: str) -> Result:
        async with slots:
            return await request(key)

    return await asyncio.gather(*(take_turn(key) for key in keys))


def _listed(meta: "ObjectMeta") -> Listed:
    written_at_s = meta["last_modified"].timestamp()
    return Listed(key=meta["path"], e_tag=meta["e_tag"] or "", size_bytes=meta["size"], written_at_s=written_at_s)


def connect(bucket: str, prefix: str, *, endpoint: str | None) -> Bucket:
    """Return a place in a bucket. What is not given, obstore takes from the usual AWS_* variables or the machine's role."""
    if endpoint is not None and not re.match(r"https?://[^/]", endpoint):
        raise BadSetting(f"AWS_ENDPOINT_URL {endpoint}: expected http:// or https:// and a host")
    config: S3Config = {} if endpoint is None else {"endpoint": endpoint}
    objects = S3Store(
        bucket,
        prefix=prefix or None,
        config=config,
        client_options={
            "allow_http": True,  # where the endpoint says so
            "connect_timeout": timedelta(seconds=2),
            "timeout": _LONGEST_TRANSFER,
        },
        retry_config={"max_retries": 0},
    )
    return Bucket(objects, uri=f"s3://{bucket}/{prefix}".rstrip("/"))
