"""The routes, and what answers an error on each."""

import time
from typing import Final

from fastapi import FastAPI, Request, WebSocket
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from fish_contracts.reports import LOAD_PATH, LoadReport
from fish_engine.errors import Draining, EngineError
from fish_engine.server.body import parse, read_bytes
from fish_engine.server.errors_http import error_response, plain_error
from fish_engine.server.live import LiveSocket
from fish_engine.server.live_session import LIVE_ROUTE
from fish_engine.server.model_api import add_model_routes
from fish_engine.server.openai_api import OPENAI_ROUTE, add_openai_routes
from fish_engine.server.reference_api import add_reference_routes
from fish_engine.server.response import ROUTE, Delivery, SpeechResponse
from fish_engine.server.schemas import TTSBody
from fish_engine.server.studio import Studio
from fish_engine.service import Service

_SPEECH_ROUTES: Final = (ROUTE, OPENAI_ROUTE)


def create_app(studio: Studio) -> FastAPI:
    """Return the application around a running service."""
    app = FastAPI(title="fish-tts engine", openapi_url=None)
    _add_health(app, studio.service)
    _add_errors(app, studio)
    add_openai_routes(app, studio)
    add_model_routes(app, studio)
    add_reference_routes(app, studio)

    @app.post(ROUTE)
    async def speak(request: Request) -> Response:
        """Speak a text: the sound as it is made."""
        requested_at_s = time.monotonic()
        raw = await read_bytes(request.stream(), limit=studio.max_body_bytes)
        body = parse(raw, request.headers.get("content-type", ""), TTSBody)
        studio.check_length(body.text)
        delivery = Delivery(
            route=ROUTE, sounding=body.sounding(), is_streamed=body.streaming, requested_at_s=requested_at_s
        )
        return SpeechResponse(await studio.narration(body), body.text, delivery, studio.metrics)

    @app.websocket(LIVE_ROUTE)
    async def converse(socket: WebSocket) -> None:
        """Speak text as it comes."""
        try:
            studio.service.check_door()
        except EngineError as error:
            studio.count_rejection(error)
            await socket.send_denial_response(error_response(LIVE_ROUTE, error))
        else:
            await LiveSocket(socket, studio).run()

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


def _add_errors(app: FastAPI, studio: Studio) -> None:
    async def on_engine_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, EngineError)
        if request.url.path in _SPEECH_ROUTES:
            studio.count_rejection(error)
        return error_response(request.url.path, error)

    async def on_http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return plain_error(request.url.path, error.status_code, error.detail, error.headers)

    async def on_bug(request: Request, __: Exception) -> Response:
        return plain_error(request.url.path, 500, "internal error")

    app.add_exception_handler(EngineError, on_engine_error)
    app.add_exception_handler(HTTPException, on_http_error)
    app.add_exception_handler(Exception, on_bug)
