"""OpenAI's way to ask for speech, on the same engine: another body, and sound as a file or as server-sent events."""

import asyncio
import base64
import json
import time
import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final, Literal

from fastapi import FastAPI, Request
from pydantic import Field
from starlette.responses import JSONResponse, Response

from fish_engine.audio.writer import Sounding
from fish_engine.errors import BadRequest, EngineError, UnknownVoice
from fish_engine.server.body import checked, parse, read_bytes
from fish_engine.server.errors_http import error_response
from fish_engine.server.forms import read_form
from fish_engine.server.model_api import new_voice
from fish_engine.server.response import Delivery, SpeechResponse
from fish_engine.server.schemas import Body, TTSBody
from fish_engine.server.studio import Studio
from fish_engine.voices.library import Voice

OPENAI_ROUTE: Final = "/v1/audio/speech"
_MODELS: Final = ("s2-pro", "tts-1", "tts-1-hd", "gpt-4o-mini-tts")
"""All of them are the one model that is served; the last three are what clients of OpenAI ask for."""
_VOICES: Final = "/v1/audio/voices"
_PCM_RATE_HZ: Final = 24_000
"""Clients of OpenAI take this for granted."""
_PRESET_VOICES: Final = frozenset(
    ("alloy", "ash", "ballad", "cedar", "coral", "echo", "fable", "marin", "nova", "onyx", "sage", "shimmer", "verse")
)
"""Names that clients send without being asked; the voice without a reference, where no stored voice has the name."""


class VoiceId(Body):
    """A voice by its id."""

    id: str


class SpeechBody(Body):
    """A text and how to speak it, in OpenAI's words; a few of ours are understood as well."""

    input: str
    model: str = ""
    voice: str | VoiceId = ""
    response_format: str = "mp3"
    speed: float = Field(default=1.0, ge=0.25, le=4.0)
    instructions: str = Field(default="", max_length=4096)
    stream_format: Literal["audio", "sse"] = "audio"
    sample_rate: int | None = None
    seed: int | None = None
    max_new_tokens: int | None = None
    temperature: float | None = None

    def spoken(self, stored: Mapping[str, object]) -> TTSBody:
        """Return the same in the words of the native API; `stored` are the voices that there are."""
        voice = self.voice if isinstance(self.voice, str) else self.voice.id
        is_default = voice in ("", "default") or (voice in _PRESET_VOICES and voice not in stored)
        # The model takes how to say something as a cue in brackets before it.
        cue = (
            f"[{self.instructions.translate({ord('['): '(', ord(']'): ')'}).strip()}] "
            if self.instructions.strip()
            else ""
        )
        fields = {
            "text": cue + self.input if self.input.strip() else "",
            "reference_id": None if is_default else voice,
            "seed": self.seed,
            "max_new_tokens": self.max_new_tokens,
            "temperature": self.temperature,
        }
        return checked(fields, TTSBody)

    def sounding(self) -> Sounding:
        """Return how the sound is to be sent, or raise `BadRequest`."""
        rate_hz = _PCM_RATE_HZ if self.sample_rate is None and self.response_format == "pcm" else self.sample_rate
        how = checked({"format": self.response_format, "sample_rate": rate_hz, "text": self.input}, TTSBody).sounding()
        return replace(how, speed=self.speed)


class SpeechEvents(SpeechResponse):
    """Speech as server-sent events."""

    media_type = "text/event-stream"

    async def _pieces(self) -> AsyncIterator[bytes]:
        try:
            async for piece in super()._pieces():
                yield _event({"type": "speech.audio.delta", "audio": base64.b64encode(piece).decode()})
        except EngineError as error:
            if self.is_begun:  # too late for a status
                yield _event({"type": "error", "error": {"message": str(error), "type": "server_error"}})
            raise
        read, made = self.narration.positions_read, self.narration.frames_made
        usage = {"input_tokens": read, "output_tokens": made, "total_tokens": read + made}
        yield _event({"type": "speech.audio.done", "usage": usage})


def add_openai_routes(app: FastAPI, studio: Studio) -> None:
    """Add the routes of OpenAI's clients."""

    @app.post(OPENAI_ROUTE)
    async def speak(request: Request) -> Response:
        requested_at_s = time.monotonic()
        raw = await read_bytes(request.stream(), limit=studio.max_body_bytes)
        body = parse(raw, request.headers.get("content-type", ""), SpeechBody)
        studio.check_length(body.input)
        delivery = Delivery(
            route=OPENAI_ROUTE, sounding=body.sounding(), is_streamed=True, requested_at_s=requested_at_s
        )
        spoken = body.spoken(studio.library.voices())
        kind = SpeechEvents if body.stream_format == "sse" else SpeechResponse
        return kind(await studio.narration(spoken), spoken.text, delivery, studio.metrics)

    @app.get("/v1/models")
    async def models() -> Response:
        listed = [{"id": name, "object": "model", "created": 0, "owned_by": "fish-tts"} for name in _MODELS]
        return JSONResponse({"object": "list", "data": listed})

    @app.get(_VOICES)
    async def voices() -> Response:
        kept = [_voice(voice) for voice in studio.library.voices().values()]
        return JSONResponse({"object": "list", "data": kept, "voices": kept})

    @app.post(_VOICES)
    async def create(request: Request) -> Response:
        form = await read_form(request, limit=studio.max_body_bytes)
        recordings = form.files("audio_sample")
        if len(recordings) != 1:
            raise BadRequest(f"audio_sample: expected one file, found {len(recordings)}")
        voice = new_voice(uuid.uuid4().hex, form.needed_text("name"), [form.needed_text("text")])
        await asyncio.to_thread(studio.keep, voice, recordings)
        return JSONResponse(_voice(voice), status_code=201)

    @app.delete(_VOICES + "/{voice_id}")
    async def delete(request: Request, voice_id: str) -> Response:
        try:
            studio.library.delete(voice_id)
        except UnknownVoice as error:
            return error_response(request.url.path, error, status=404)
        return JSONResponse({"id": voice_id, "object": "audio.voice.deleted", "deleted": True})


def _voice(voice: Voice) -> dict[str, object]:
    created_at = int(datetime.fromisoformat(voice.created_at).timestamp())
    return {"id": voice.voice_id, "object": "audio.voice", "name": voice.title, "created_at": created_at}


def _event(message: Mapping[str, object]) -> bytes:
    return f"data: {json.dumps(message)}\n\n".encode()
