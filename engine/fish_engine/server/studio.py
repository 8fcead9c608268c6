"""What every route needs to speak: the engine, its voices, its limits and its metrics."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from fish_engine.errors import BadRequest, EngineError
from fish_engine.loading import LoadedEngine
from fish_engine.server.errors_http import rejection_reason
from fish_engine.server.narration import Narration
from fish_engine.server.schemas import SpeechFields
from fish_engine.server.speech import prepare
from fish_engine.service import Service
from fish_engine.telemetry import EngineMetrics
from fish_engine.voices.library import Voice, VoiceLibrary
from fish_engine.voices.references import ReferenceEncoder


@dataclass(frozen=True, slots=True, kw_only=True)
class Studio:
    """Where speech is made."""

    loaded: LoadedEngine
    service: Service
    metrics: EngineMetrics
    references: ReferenceEncoder
    library: VoiceLibrary
    max_text_chars: int
    max_body_bytes: int

    def check_length(self, text: str) -> None:
        """Raise `BadRequest` for a text that is longer than this server takes at a time."""
        if len(text) > self.max_text_chars:
            raise BadRequest(f"text has {len(text)} characters; this server takes at most {self.max_text_chars}")

    async def narration(self, body: SpeechFields) -> Narration:
        """Return a voice that is ready to speak.

        Raises:
            Overloaded, Draining: it would be turned away now, so that no reference is encoded in vain.
            BadRequest: as `prepare`.
        """
        self.service.check_door()
        # Tokenising is quick, but a reference is encoded by a model: other streams must not wait for it.
        return Narration(
            self.service, await asyncio.to_thread(prepare, body, self.loaded, self.references, self.library)
        )

    def keep(self, voice: Voice, recordings: Sequence[bytes]) -> None:
        """Keep a voice whose recordings can be read, their codes ready; takes as long as to encode them."""
        for recording in recordings:
            self.references.codes(recording)
        self.library.add(voice, recordings)

    def count_rejection(self, error: EngineError) -> None:
        """Count a request for speech that is turned away."""
        self.metrics.rejected.labels(rejection_reason(error)).inc()
