"""What every route needs to speak: the engine, its voices, its limits and its metrics."""

import asyncio
from dataclasses import dataclass
from typing import Final

from fish_engine.errors import BadRequest, Draining, EngineError, Overloaded
from fish_engine.loading import LoadedEngine
from fish_engine.server.body import BodyTooLarge, UnsupportedBody
from fish_engine.server.narration import Narration
from fish_engine.server.schemas import SpeechFields
from fish_engine.server.speech import prepare
from fish_engine.service import Service
from fish_engine.telemetry import EngineMetrics
from fish_engine.voices.references import ReferenceEncoder

_ANSWERS: Final[tuple[tuple[type[EngineError], int, str], ...]] = (
    (BodyTooLarge, 413, "bad_request"),
    (UnsupportedBody, 415, "bad_request"),
    (BadRequest, 400, "bad_request"),
    (Overloaded, 429, "overloaded"),
    (Draining, 503, "draining"),
    (EngineError, 500, "failed"),
)
"""Status, and reason in the metric; the first kind that fits counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Studio:
    """Where speech is made."""

    loaded: LoadedEngine
    service: Service
    metrics: EngineMetrics
    voices: ReferenceEncoder
    max_text_chars: int
    max_body_bytes: int

    def check_length(self, text: str) -> None:
        """Raise `BadRequest` for a text that is longer than this server takes at a time."""
        if len(text) > self.max_text_chars:
            raise BadRequest(f"text has {len(text)} characters; this server takes at most {self.max_text_chars}")

    async def narration(self, body: SpeechFields) -> Narration:
        """Return a voice that is ready to speak."""
        # Tokenising is quick, but a reference is encoded by a model: other streams must not wait for it.
        return Narration(self.service, await asyncio.to_thread(prepare, body, self.loaded, self.voices))

    def count_rejection(self, error: EngineError) -> None:
        """Count a request for speech that is turned away."""
        self.metrics.rejected.labels(next(reason for kind, _, reason in _ANSWERS if isinstance(error, kind))).inc()


def status_of(error: EngineError) -> int:
    """Return the HTTP status that answers an error."""
    return next(status for kind, status, _ in _ANSWERS if isinstance(error, kind))
