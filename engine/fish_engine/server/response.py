"""Sending speech: as it is made, or whole; and giving it up when nobody listens any more."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from fish_engine.audio.wav import pcm16, wav_header
from fish_engine.server.stream import Silence, SpeechStream
from fish_engine.telemetry import EngineMetrics

ROUTE: Final = "/v1/tts"
_MEDIA_TYPES: Final = {"wav": "audio/wav", "pcm": "audio/pcm"}
_SAMPLE_BYTES: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """How a client wants its sound."""

    audio_format: str
    sample_rate_hz: int
    gain: float
    is_streamed: bool
    requested_at_s: float
    """When the request arrived, by the monotonic clock."""

    def header(self, data_bytes: int | None) -> bytes:
        """Return what comes before the samples; `data_bytes` is None while the end is not known."""
        if self.audio_format == "pcm":
            return b""
        return wav_header(sample_rate_hz=self.sample_rate_hz, data_bytes=data_bytes)


class SpeechResponse(Response):
    """The response to one request for speech.

    The status waits for the first sound: what fails before it is an error with a status of its own. What fails after it
    breaks the connection, so that no client takes half a sentence for a whole one.
    """

    def __init__(self, stream: SpeechStream | Silence, delivery: Delivery, metrics: EngineMetrics) -> None:
        self.status_code = 200
        self.background = None
        self.media_type = _MEDIA_TYPES[delivery.audio_format]
        self.init_headers(
            {
                "content-disposition": f"attachment; filename=audio.{delivery.audio_format}",
                "x-sample-rate": str(delivery.sample_rate_hz),
            }
        )
        self._stream = stream
        self._delivery = delivery
        self._metrics = metrics
        self._pcm_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the end, or until the client has left."""
        async with self._stream:
            sending = asyncio.create_task(self._send(send))
            leaving = asyncio.create_task(_disconnect(receive))
            try:
                await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
                if sending.done():
                    sending.result()
                else:
                    self._metrics.cancelled.labels("after_audio" if self._pcm_bytes else "before_audio").inc()
            finally:
                sending.cancel()
                leaving.cancel()
                await asyncio.gather(sending, leaving, return_exceptions=True)

    async def _send(self, send: Send) -> None:
        async for body in self._bodies():
            if not self._pcm_bytes:
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                self._metrics.first_audio_s.labels(ROUTE).observe(time.monotonic() - self._delivery.requested_at_s)
            self._pcm_bytes += len(body)
            await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        sound_s = self._pcm_bytes / (_SAMPLE_BYTES * self._delivery.sample_rate_hz)
        took_s = time.monotonic() - self._delivery.requested_at_s
        self._metrics.real_time_factor.labels(ROUTE).observe(took_s / sound_s)

    async def _bodies(self) -> AsyncIterator[bytes]:
        """Yield the file in pieces as they are made, the header with the first, or in one piece of known length."""
        if self._delivery.is_streamed:
            header = self._delivery.header(None)
            async for pcm in self._pcm():
                yield header + pcm
                header = b""
        else:
            whole = b"".join([pcm async for pcm in self._pcm()])
            header = self._delivery.header(len(whole))
            self.headers["content-length"] = str(len(header) + len(whole))
            yield header + whole

    async def _pcm(self) -> AsyncIterator[bytes]:
        async for samples in self._stream.samples():
            yield pcm16(samples * self._delivery.gain)


async def _disconnect(receive: Receive) -> None:
    """Return when the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
