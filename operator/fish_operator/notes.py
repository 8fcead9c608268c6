"""Annotations that the operator leaves on pods, so that another process of it can go on where this one ended. Pure."""

import json
from dataclasses import asdict, dataclass, fields
from typing import Final

from fish_contracts.labels import API_GROUP

FAILURES: Final = f"{API_GROUP}/failures"
"""How often in a row the pods before this one failed: the back-off's only memory."""
RECLAIM: Final = f"{API_GROUP}/reclaim"
"""A `ReclaimNote`: first on the victim, then on the engine that got its GPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReclaimNote:
    """One GPU's way from a fill worker to an engine, so far.

    Times are seconds since the epoch; each is None until it has happened.
    """

    owner: str
    """The TTSDeployment, as namespace/name."""
    victim: str
    seen_at_s: float
    """When the demand that needs this GPU was first seen."""
    evicted_at_s: float
    freed_at_s: float | None = None
    created_at_s: float | None = None


def write_note(note: ReclaimNote) -> str:
    """Return the annotation's text."""
    return json.dumps(asdict(note))


def read_note(text: str | None) -> ReclaimNote | None:
    """Read the annotation; one that somebody has edited into nonsense counts as absent, since it only tells times."""
    if text is None:
        return None
    try:
        raw = json.loads(text)
        values = {field.name: raw[field.name] for field in fields(ReclaimNote)}
    except (ValueError, KeyError, TypeError):
        return None
    times = (values["seen_at_s"], values["evicted_at_s"])
    return ReclaimNote(**values) if all(isinstance(time, int | float) for time in times) else None
