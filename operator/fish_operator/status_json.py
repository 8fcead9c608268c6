"""Status records ↔ the JSON of `status`. Pure."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel, to_snake

Status = TypeVar("Status")
Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def read_status(kind: type[Status], raw: object) -> Status:
    """Read what was written before; a status that makes no sense counts as never written, since the cluster can be read again."""
    try:
        return TypeAdapter(kind).validate_python(_with_snake_keys(raw or {}))
    except ValidationError:
        return kind()


def _with_snake_keys(raw: object) -> object:
    if isinstance(raw, Mapping):
        return {to_snake(str(key)): _with_snake_keys(value) for key, value in raw.items()}
    if isinstance(raw, list):
        return [_with_snake_keys(value) for value in raw]
    return raw


def write_status(status: object) -> Json:
    """Return the JSON of a status record, without the fields that are None."""
    if is_dataclass(status):
        values = ((field.name, getattr(status, field.name)) for field in fields(status))
        return {to_camel(name): write_status(value) for name, value in values if value is not None}
    if isinstance(status, tuple):
        return [write_status(value) for value in status]
    assert status is None or isinstance(status, bool | int | float | str)
    return status


def changed_fields(before: object, after: object) -> dict[str, Json]:
    """Return the top-level fields to merge into a status: those that differ, with null for those that are gone."""
    old, new = write_status(before), write_status(after)
    assert isinstance(old, dict)
    assert isinstance(new, dict)
    if before == type(before)():
        return new  # never written: zeros are news too
    changed = {name: value for name, value in new.items() if name not in old or old[name] != value}
    return changed | {name: None for name in old if name not in new}
