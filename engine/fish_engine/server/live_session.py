"""One session of `/v1/tts/live`: text in as it is written, one file out as it is made.

    take ──► segmenter ──► parts ──► narration ──► writer ──► frames

Events are handled one after another. So when text comes, nothing is being said: a complete sentence is said at once. While
something is said, further text waits in the queue of frames, and then makes larger parts.
"""

import time
from collections.abc import Sequence
from typing import Final

from starlette.websockets import WebSocket

from fish_engine.audio.writer import Sounding
from fish_engine.server.live_events import audio_frames, finish_frame
from fish_engine.server.narration import Narration, recital
from fish_engine.server.offloading import OffloadingWriter
from fish_engine.server.studio import Studio
from fish_engine.text.segments import Segmenter

LIVE_ROUTE: Final = "/v1/tts/live"
_RAW_FORMATS: Final = frozenset({"wav", "pcm", "ulaw", "alaw"})
_LEAST_RAW_BYTES: Final = 1025
"""Some clients take a shorter message for none."""


class LiveSession:
    """What happens between `start` and `finish`."""

    def __init__(self, socket: WebSocket, narration: Narration, sounding: Sounding, studio: Studio) -> None:
        self.is_over = False
        self._socket = socket
        self._narration = narration
        self._studio = studio
        self._segmenter = Segmenter(limit_chars=narration.part_chars)
        self._writer = OffloadingWriter(sounding, source_rate_hz=narration.sample_rate_hz)
        self._least_bytes = _LEAST_RAW_BYTES if sounding.encoding.format.name in _RAW_FORMATS else 1
        self._unsent = b""
        self._is_heard = False
        """Sound of what is being said has been sent."""

    async def take(self, text: str, *, more_waits: bool) -> None:
        """Say what this text completes; a single sentence only if nothing more is there to say with it."""
        self._studio.check_length(text)
        parts = self._segmenter.add(text)
        if not parts and not more_waits:
            parts = self._segmenter.sentences()
        await self._say(parts)

    async def flush(self) -> None:
        """Say all that there is."""
        await self._say(self._segmenter.flush())

    async def stop(self) -> None:
        """Say all that there is, and end the file."""
        with self._narration.held():
            await self.flush()
            if self._writer.sound_s > 0:
                await self._send(await self._writer.finish(), is_end=True)
            await self._socket.send_bytes(finish_frame())
        self.is_over = True

    async def _say(self, parts: Sequence[str]) -> None:
        asked_at_s, self._is_heard = time.monotonic(), False
        try:
            with self._narration.held():
                async for samples in recital(self._narration, parts):
                    await self._send(await self._writer.write(samples))
                    if not self._is_heard:
                        self._is_heard = True
                        self._studio.metrics.first_audio_s.labels(LIVE_ROUTE).observe(time.monotonic() - asked_at_s)
                await self._send(b"", is_end=True)
        finally:
            if self._narration.is_speaking:
                self._studio.metrics.cancelled.labels("after_audio" if self._is_heard else "before_audio").inc()

    async def _send(self, sound: bytes, *, is_end: bool = False) -> None:
        self._unsent += sound
        if len(self._unsent) >= (1 if is_end else self._least_bytes):
            sound, self._unsent = self._unsent, b""
            for frame in audio_frames(sound):
                await self._socket.send_bytes(frame)
