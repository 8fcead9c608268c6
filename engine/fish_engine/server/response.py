"""Sending speech: as it is made, or whole; and giving it up when nobody listens any more."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from fish_engine.audio.wav import with_true_sizes
from fish_engine.audio.writer import Sounding
from fish_engine.server.narration import Narration, Samples, recital, silence
from fish_engine.server.offloading import OffloadingWriter
from fish_engine.telemetry import EngineMetrics
from fish_engine.text.segments import Segmenter

ROUTE: Final = "/v1/tts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """How a client wants its sound, and from when it waits for it."""

    route: str
    sounding: Sounding
    is_streamed: bool
    requested_at_s: float
    """When the request arrived, by the monotonic clock."""


class SpeechResponse(Response):
    """The response to one request for speech.

    The status waits for the first sound: what fails before it is an error with a status of its own. What fails after it
    breaks the connection, so that no client takes half a sentence for a whole one.
    """

    def __init__(self, narration: Narration, text: str, delivery: Delivery, metrics: EngineMetrics) -> None:
        encoding = delivery.sounding.encoding
        self.status_code = 200
        self.background = None
        self.media_type = self.media_type or encoding.format.media_type
        self.init_headers(
            {
                "content-disposition": f"attachment; filename=audio.{encoding.format.name}",
                "x-sample-rate": str(encoding.rate_hz),
            }
        )
        self.narration = narration
        self._text = text
        self._delivery = delivery
        self._metrics = metrics
        self._writer = OffloadingWriter(delivery.sounding, source_rate_hz=narration.sample_rate_hz)
        self.is_begun = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the end, or until the client has left."""
        with self.narration.held():
            await self._deliver(receive, send)

    async def _deliver(self, receive: Receive, send: Send) -> None:
        async with self.narration:
            sending = asyncio.create_task(self._send(send))
            leaving = asyncio.create_task(_disconnect(receive))
            try:
                await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
                if sending.done():
                    sending.result()
                else:
                    self._metrics.cancelled.labels("after_audio" if self.is_begun else "before_audio").inc()
            finally:
                sending.cancel()
                leaving.cancel()
                await asyncio.gather(sending, leaving, return_exceptions=True)

    async def _send(self, send: Send) -> None:
        async for body in self._pieces() if self._delivery.is_streamed else self._whole():
            if not self.is_begun:
                self.is_begun = True
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                self._metrics.first_audio_s.labels(self._delivery.route).observe(
                    time.monotonic() - self._delivery.requested_at_s
                )
            await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        took_s = time.monotonic() - self._delivery.requested_at_s
        self._metrics.real_time_factor.labels(self._delivery.route).observe(took_s / self._writer.sound_s)

    async def _pieces(self) -> AsyncIterator[bytes]:
        """Yield the file as it is made."""
        async for samples in self._samples():
            if piece := await self._writer.write(samples):
                yield piece
        if rest := await self._writer.finish():
            yield rest

    async def _samples(self) -> AsyncIterator[Samples]:
        """Yield the sound of every part of the text, or a moment of silence where it has nothing to say."""
        segmenter = Segmenter(limit_chars=self.narration.part_chars)
        parts = [*segmenter.add(self._text), *segmenter.flush()]
        is_silent = True
        async for samples in recital(self.narration, parts):
            is_silent = False
            yield samples
        if is_silent:
            yield silence(self.narration.sample_rate_hz)

    async def _whole(self) -> AsyncIterator[bytes]:
        """Yield the file in one piece of known length."""
        file = b"".join([piece async for piece in self._pieces()])
        if self._delivery.sounding.encoding.format.name == "wav":
            file = with_true_sizes(file)
        self.headers["content-length"] = str(len(file))
        yield file


async def _disconnect(receive: Receive) -> None:
    """Return when the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
