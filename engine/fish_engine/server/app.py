"""Routes, and the one shape of their errors: exactly {"status", "message"}, because clients break on anything else."""

import asyncio
import time
from collections.abc import Mapping
from typing import Final

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from fish_contracts.reports import LOAD_PATH, LoadReport
from fish_engine.errors import BadRequest, Draining, EngineError, Overloaded
from fish_engine.loading import LoadedEngine
from fish_engine.server.body import BodyTooLarge, UnsupportedBody, parse, read_bytes
from fish_engine.server.response import ROUTE, Delivery, SpeechResponse
from fish_engine.server.schemas import TTSBody
from fish_engine.server.speech import prepare
from fish_engine.server.stream import Silence, SpeechStream
from fish_engine.service import Service
from fish_engine.telemetry import EngineMetrics
from fish_engine.text.pronounceable import is_pronounceable
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


def create_app(
    loaded: LoadedEngine, service: Service, metrics: EngineMetrics, *, max_text_chars: int, max_body_bytes: int
) -> FastAPI:
    """Return the application around a running service."""
    app = FastAPI(title="fish-tts engine", openapi_url=None)
    voices = ReferenceEncoder(loaded.codec)
    _add_health(app, service)
    _add_errors(app, metrics)

    @app.post(ROUTE)
    async def speak(request: Request) -> Response:
        """Speak a text: the sound as it is made."""
        requested_at_s = time.monotonic()
        raw = await read_bytes(request.stream(), limit=max_body_bytes)
        body = parse(raw, request.headers.get("content-type", ""), TTSBody)
        if len(body.text) > max_text_chars:
            raise BadRequest(f"text has {len(body.text)} characters; this server takes at most {max_text_chars}")
        rate_hz = loaded.codec.config.sample_rate_hz
        delivery = Delivery(sounding=body.sounding(), is_streamed=body.streaming, requested_at_s=requested_at_s)
        if not is_pronounceable(body.text):
            return SpeechResponse(Silence(sample_rate_hz=rate_hz), delivery, metrics, source_rate_hz=rate_hz)
        # Tokenising is quick, but a reference is encoded by a model: other streams must not wait for it.
        speech = await asyncio.to_thread(prepare, body, loaded, voices)
        return SpeechResponse(SpeechStream(service, speech), delivery, metrics, source_rate_hz=rate_hz)

    return app


def _add_health(app: FastAPI, service: Service) -> None:
    @app.get("/health/live")
    async def is_alive() -> Response:
        return JSONResponse({"status": "ok"})

    @app.api_route("/v1/health", methods=["GET", "POST"])
    @app.get("/health/ready")
    async def is_ready() -> Response:
        if service.is_draining:
            raise Draining("the server is about to stop")
        return JSONResponse({"status": "ok"})

    @app.get(LOAD_PATH)
    async def how_busy() -> Response:
        load = service.load
        report = LoadReport(
            active_streams=load.active,
            queued_streams=load.queued,
            max_streams=service.max_streams,
            is_draining=service.is_draining,
        )
        return Response(report.to_json(), media_type="application/json")


def _add_errors(app: FastAPI, metrics: EngineMetrics) -> None:
    async def on_engine_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, EngineError)
        status, reason = next((status, reason) for kind, status, reason in _ANSWERS if isinstance(error, kind))
        if request.url.path == ROUTE:
            metrics.rejected.labels(reason).inc()
        headers = {"retry-after": str(error.retry_after_s)} if isinstance(error, Overloaded) else None
        return _error(status, str(error), headers)

    async def on_http_error(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return _error(error.status_code, error.detail, error.headers)

    async def on_bug(_: Request, __: Exception) -> Response:
        return _error(500, "internal error")

    app.add_exception_handler(EngineError, on_engine_error)
    app.add_exception_handler(HTTPException, on_http_error)
    app.add_exception_handler(Exception, on_bug)


def _error(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse({"status": status, "message": message}, status_code=status, headers=headers)
