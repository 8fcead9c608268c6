"""Errors as bodies: {"status", "message"} and nothing else for Fish Audio's clients, {"error": {…}} for those of OpenAI."""

from collections.abc import Mapping
from typing import Final

from starlette.responses import JSONResponse, Response

from fish_engine.errors import BadRequest, Draining, EngineError, Overloaded, Unauthorized, VoiceExists
from fish_engine.server.body import BodyTooLarge, UnsupportedBody

_ANSWERS: Final[tuple[tuple[type[EngineError], int, str], ...]] = (
    (Unauthorized, 401, "bad_request"),
    (VoiceExists, 409, "bad_request"),
    (BodyTooLarge, 413, "bad_request"),
    (UnsupportedBody, 415, "bad_request"),
    (BadRequest, 400, "bad_request"),
    (Overloaded, 429, "overloaded"),
    (Draining, 503, "draining"),
    (EngineError, 500, "failed"),
)
"""Status, and reason in the metric; the first kind that fits counts."""
_OPENAI_PATHS: Final = ("/v1/audio/", "/v1/models")


def rejection_reason(error: EngineError) -> str:
    """Return how an error is counted."""
    return next(reason for kind, _, reason in _ANSWERS if isinstance(error, kind))


def error_response(path: str, error: EngineError, *, status: int | None = None) -> Response:
    """Return the answer to an error on a route."""
    headers = {"retry-after": str(error.retry_after_s)} if isinstance(error, Overloaded) else None
    status = status or next(status for kind, status, _ in _ANSWERS if isinstance(error, kind))
    return plain_error(path, status, str(error), headers)


def plain_error(path: str, status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return an error body in the shape that the clients of this route read."""
    if path.startswith(_OPENAI_PATHS):
        kind = "invalid_request_error" if status < 500 else "server_error"
        return JSONResponse(
            {"error": {"message": message, "type": kind, "param": None, "code": status}}, status, headers
        )
    return JSONResponse({"status": status, "message": message}, status, headers)
