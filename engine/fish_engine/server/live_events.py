"""The words of `/v1/tts/live`: msgpack maps, one a frame. Fields and events that we do not know are ignored."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import ormsgpack

from fish_engine.errors import BadRequest

MAX_FRAME_BYTES: Final = 60_000
"""Clients take no frame above 64 KiB; this leaves room for what is around the sound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A session begins: how to speak."""

    request: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """More to say."""

    text: str


@dataclass(frozen=True, slots=True)
class Flush:
    """Say what there is, although more will come."""


@dataclass(frozen=True, slots=True)
class Stop:
    """No more will come."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """An event of another version of the protocol."""


ClientEvent = Start | Text | Flush | Stop | Unknown


class UnreadableFrame(BadRequest):
    """A frame that is no msgpack map."""


def client_event(frame: bytes | str) -> ClientEvent:
    """Return what a frame says.

    Raises:
        UnreadableFrame: not msgpack.
        BadRequest: msgpack, but not an event with what it needs.
    """
    message = _unpacked(frame)
    match message.get("event"):
        case "start":
            request = message.get("request")
            if not isinstance(request, dict):
                raise BadRequest(f"start: expected the field request with an object, found {type(request).__name__}")
            return Start(request=request)
        case "text":
            text = message.get("text")
            if not isinstance(text, str):
                raise BadRequest(f"text: expected the field text with a string, found {type(text).__name__}")
            return Text(text=text)
        case "flush":
            return Flush()
        case "stop":
            return Stop()
        case str():
            return Unknown()
        case other:
            raise BadRequest(f"expected the field event with start, text, flush or stop, found {type(other).__name__}")


def _unpacked(frame: bytes | str) -> dict[object, object]:
    if isinstance(frame, str):
        raise UnreadableFrame("expected a binary frame with msgpack, found a text frame")
    try:
        message = ormsgpack.unpackb(frame)
    except ValueError as error:
        raise UnreadableFrame(f"a frame of {len(frame)} bytes is not msgpack: {error}") from error
    if not isinstance(message, dict):
        raise UnreadableFrame(f"expected a msgpack map, found {type(message).__name__}")
    return message


def audio_frames(sound: bytes) -> list[bytes]:
    """Return the frames that carry this much of a file."""
    starts = range(0, len(sound), MAX_FRAME_BYTES)
    return [ormsgpack.packb({"event": "audio", "audio": sound[start : start + MAX_FRAME_BYTES]}) for start in starts]


def finish_frame() -> bytes:
    """Return the end of a session; the socket stays open for another."""
    return ormsgpack.packb({"event": "finish", "reason": "stop"})


def error_frame(message: str) -> bytes:
    """Return the end of a session that went wrong; clients show `message`."""
    return ormsgpack.packb({"event": "finish", "reason": "error", "message": message})
