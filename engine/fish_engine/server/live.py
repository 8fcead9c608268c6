"""`/v1/tts/live`: one socket, many sessions.

One task reads the socket, so that a client that leaves is noticed at once, whatever is being said; the other serves sessions
in order, from a queue of frames.
"""

import asyncio
import contextlib
import logging
from typing import Final

from starlette.websockets import WebSocket, WebSocketDisconnect

from fish_engine.errors import BadRequest, Draining, EngineError, Overloaded
from fish_engine.server.body import checked
from fish_engine.server.live_events import (
    ClientEvent,
    Flush,
    Start,
    Stop,
    Text,
    UnreadableFrame,
    client_event,
    error_frame,
)
from fish_engine.server.live_session import LiveSession
from fish_engine.server.schemas import SpeechFields
from fish_engine.server.studio import Studio

_log = logging.getLogger(__name__)
_IDLE_S: Final = 600.0
"""A socket on which nothing comes for so long is closed. Clients keep theirs in a pool for five minutes."""
_CLOSE_CODES: Final[tuple[tuple[type[EngineError], int], ...]] = (
    (UnreadableFrame, 1007),
    (BadRequest, 1008),
    (Overloaded, 1013),
    (Draining, 1001),
    (EngineError, 1011),
)
"""The first kind that fits counts."""
_GOING_AWAY: Final = 1001


class LiveSocket:
    """One connection, from its acceptance to its end."""

    def __init__(self, socket: WebSocket, studio: Studio) -> None:
        self._socket = socket
        self._studio = studio
        self._frames: asyncio.Queue[bytes | str] = asyncio.Queue()
        self._queued_bytes = 0

    async def run(self) -> None:
        """Serve sessions until the client leaves, an error ends them, or nothing comes any more."""
        await self._socket.accept()
        reading = asyncio.create_task(self._read())
        serving = asyncio.create_task(self._serve())
        try:
            await asyncio.wait((reading, serving), return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                serving.result()
        finally:
            reading.cancel()
            serving.cancel()
            await asyncio.gather(reading, serving, return_exceptions=True)

    async def _read(self) -> None:
        """Queue frames until the client has left, or has sent more than the server means to keep."""
        while (message := await self._socket.receive())["type"] != "websocket.disconnect":
            frame: bytes | str = message.get("bytes") or message.get("text") or b""
            self._queued_bytes += len(frame)
            if self._queued_bytes > self._studio.max_body_bytes:
                await self._fail(BadRequest(f"more than {self._studio.max_body_bytes} bytes wait to be said"))
                return
            self._frames.put_nowait(frame)

    async def _serve(self) -> None:
        with contextlib.suppress(WebSocketDisconnect):  # the reader notices as well
            try:
                while True:
                    await self._serve_session()
            except TimeoutError:
                await self._socket.close(_GOING_AWAY, f"nothing came for {_IDLE_S:.0f} s")
            except EngineError as error:
                await self._fail(error)
            except WebSocketDisconnect:
                raise
            except Exception:
                _log.exception("session failed")
                await self._fail(EngineError("internal error"))

    async def _fail(self, error: EngineError) -> None:
        """End the session and the connection: after an error neither side knows where the other one stands."""
        self._studio.count_rejection(error)
        await self._socket.send_bytes(error_frame(str(error)))
        await self._socket.close(next(code for kind, code in _CLOSE_CODES if isinstance(error, kind)))

    async def _next_event(self) -> ClientEvent:
        async with asyncio.timeout(_IDLE_S):
            frame = await self._frames.get()
        self._queued_bytes -= len(frame)
        return client_event(frame)

    async def _serve_session(self) -> None:
        """Serve one session, from `start` to `finish`."""
        event = await self._next_event()
        if isinstance(event, Text | Flush | Stop):
            raise BadRequest(f"{type(event).__name__.lower()} came before start")
        if not isinstance(event, Start):
            return
        body = checked(event.request, SpeechFields)
        async with await self._studio.narration(body) as narration:
            session = LiveSession(self._socket, narration, body.sounding(), self._studio)
            await session.take(body.text, more_waits=not self._frames.empty())
            while not session.is_over:
                match await self._next_event():
                    case Text(text=text):
                        await session.take(text, more_waits=not self._frames.empty())
                    case Flush():
                        await session.flush()
                    case Stop():
                        await session.stop()
                    case Start():
                        raise BadRequest("start came twice; send stop before the next one")
                    case _:
                        pass  # an event of another version
