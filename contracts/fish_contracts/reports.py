"""What running work says about itself over HTTP, asked by the operator every second.

Each record travels as one flat JSON object. Reading is strict: a report that lacks a field or has a wrong type raises
`BadReport`, because a wrong zero would scale a busy deployment down.
"""

import json
from dataclasses import asdict, dataclass, fields
from typing import Final, Self

LOAD_PATH: Final = "/v1/load"
"""Where an engine answers GET with a `LoadReport`."""
PROGRESS_PATH: Final = "/v1/progress"
"""Where a cleaning worker answers GET with a `ProgressReport`."""

HTTP_PORT: Final = 8080
METRICS_PORT: Final = 9090


class BadReport(ValueError):  # noqa: N818 - the name is the sentence
    """The text is not a report of the expected kind; the message names the field."""


class _Report:
    """Reading and writing that both reports share."""

    __slots__ = ()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read a report; unknown fields are ignored, so that an older reader understands a newer writer."""
        try:
            raw = json.loads(text)
        except ValueError as error:
            raise BadReport(f"{cls.__name__}: not JSON: {error}") from error
        if not isinstance(raw, dict):
            raise BadReport(f"{cls.__name__}: expected an object, found {type(raw).__name__}")
        values: dict[str, object] = {}
        for field in fields(cls):  # type: ignore[arg-type]
            values[field.name] = _checked(cls.__name__, field.name, field.type, raw.get(field.name))
        return cls(**values)

    def to_json(self) -> str:
        """Write the report as one JSON object."""
        return json.dumps(asdict(self))  # type: ignore[call-overload]


def _checked(report: str, name: str, kind: object, value: object) -> object:
    if kind is bool:
        good = isinstance(value, bool)
    elif kind is int:
        good = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    else:
        # Not a number compares false with everything, so NaN is refused here too.
        good = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")
    if not good:
        wanted = getattr(kind, "__name__", kind)
        raise BadReport(f"{report}: {name} must be a {wanted} and not negative, found {value!r}")
    return float(value) if kind is float and isinstance(value, int | float) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReport(_Report):
    """How busy one engine is."""

    active_streams: int
    queued_streams: int
    max_streams: int
    is_draining: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressReport(_Report):
    """How far the cleaning job has come, as one worker sees it, and what stopping this worker now would cost."""

    units_total: int
    units_committed: int
    items_total: int
    items_committed: int
    items_rejected: int
    audio_s: float
    """Seconds of input audio that this worker has been through since its start."""
    work_at_risk_s: float
    """Seconds of work since the last durable checkpoint of this worker."""
