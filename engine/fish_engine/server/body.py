"""Bytes of a request to a checked record, or to a sentence that says what is wrong with them."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import TypeVar

import ormsgpack
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from fish_engine.errors import BadRequest

_JSON = frozenset({"", "application/json", "text/json"})
_MSGPACK = frozenset({"application/msgpack", "application/x-msgpack", "application/vnd.msgpack"})
_SHOWN_CHARS = 80

Record = TypeVar("Record", bound=BaseModel)


class UnsupportedBody(BadRequest):
    """The content type is not one that we read."""


class BodyTooLarge(BadRequest):
    """More bytes than this server takes."""


async def read_bytes(chunks: AsyncIterator[bytes], *, limit: int) -> bytes:
    """Return the whole body; stop reading where it grows past `limit` bytes."""
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > limit:
            raise BodyTooLarge(f"the body is larger than {limit} bytes, which is what this server takes")
    return bytes(body)


def parse(body: bytes, content_type: str, record: type[Record]) -> Record:
    """Return the record that the body holds.

    Raises:
        UnsupportedBody: neither JSON nor msgpack.
        BadRequest: not readable, or a field that is missing, of the wrong type or out of range, named with its value.
    """
    fields = decoded(body, content_type)
    if not isinstance(fields, dict):
        raise BadRequest(f"the body must be one object with the field text, found {type(fields).__name__}")
    return checked(fields, record)


def checked(fields: Mapping[str, object], record: type[Record]) -> Record:
    """Return the record that has these fields, or raise `BadRequest` with every fault."""
    try:
        return record.model_validate(fields)
    except ValidationError as error:
        raise BadRequest("; ".join(_sentence(fault) for fault in error.errors(include_url=False))) from error


def decoded(body: bytes, content_type: str) -> object:
    """Return what the body holds, or raise as `parse` does."""
    kind = content_type.partition(";")[0].strip().lower()
    try:
        if kind in _MSGPACK:
            return ormsgpack.unpackb(body)
        if kind in _JSON:
            return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"the body is not {kind or 'application/json'}: {error}") from error
    raise UnsupportedBody(f"content type {kind!r} is not supported; send application/json or application/msgpack")


def _sentence(fault: ErrorDetails) -> str:
    """Return one complaint with the field and its value; long values and recordings are not read back to the client."""
    where, value = ".".join(map(str, fault["loc"])), fault["input"]
    if fault["type"] == "value_error":
        complaint = str(fault["ctx"]["error"])
    else:
        complaint = fault["msg"].replace("Input should be", "expected", 1)
        if isinstance(value, int | float | str) and len(str(value)) <= _SHOWN_CHARS:
            complaint += f", found {value!r}"
    return f"{where}: {complaint}" if where else complaint
