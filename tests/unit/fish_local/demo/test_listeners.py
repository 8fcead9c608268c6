"""Listeners meet a real HTTP server on loopback: whole streams, refusals and cut streams are told apart."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from fish_local.demo import engines, listeners
from fish_local.demo.listeners import WAV_HEADER_BYTES, Crowd

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: audio/wav\r\ntransfer-encoding: chunked\r\n\r\n"
AUDIO = bytes(WAV_HEADER_BYTES) + b"\1\2" * 500
CHUNK = f"{len(AUDIO):x}\r\n".encode() + AUDIO + b"\r\n"
WHOLE = HEAD + CHUNK + b"0\r\n\r\n"
CUT = HEAD + CHUNK
FAILED = b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n"
LOST_IN_THE_QUEUE = b""
REFUSED = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n"
HEADER_ONLY = HEAD + b"2c\r\n" + bytes(44) + b"\r\n0\r\n\r\n"


class OneEngine(engines.EngineDirectory):
    """A directory that knows one base URL."""

    def __init__(self, base_url: str) -> None:
        super().__init__()
        self.base_url = base_url

    @engines.contextmanager
    def least_busy(self):
        yield self.base_url


@asynccontextmanager
async def server(replies: list[bytes]) -> AsyncIterator[str]:
    """Answer each connection with the next reply and close it; the last reply repeats."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(replies.pop(0) if len(replies) > 1 else replies[0])
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with listening:
        host, port = listening.sockets[0].getsockname()
        yield f"http://{host}:{port}"


async def hear_one(replies: list[bytes]) -> listeners.Tally:
    async with server(replies) as base_url, httpx.AsyncClient() as client:
        crowd = Crowd(engines=OneEngine(base_url), client=client)
        crowd.resize(1)
        await crowd.leave()
        return crowd.tally


@pytest.fixture(autouse=True)
def _retry_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "RETRY_DELAY_S", 0)


async def test_a_whole_stream_is_heard():
    tally = await hear_one([WHOLE])
    assert (tally.finished, tally.cut, len(tally.first_audio_s)) == (1, 0, 1)


@pytest.mark.parametrize("reply", [CUT, HEADER_ONLY, FAILED, LOST_IN_THE_QUEUE])
async def test_a_stream_that_breaks_or_is_empty_counts_as_cut(reply):
    tally = await hear_one([reply])
    assert (tally.finished, tally.cut) == (0, 1)


async def test_a_refused_listener_asks_again_and_nothing_counts_as_cut():
    tally = await hear_one([REFUSED, REFUSED, WHOLE])
    assert (tally.finished, tally.cut, tally.turned_away) == (1, 0, 2)


async def test_a_crowd_shrinks_after_the_streams_it_hears():
    async with server([WHOLE]) as base_url, httpx.AsyncClient() as client:
        crowd = Crowd(engines=OneEngine(base_url), client=client)
        crowd.resize(5)
        assert crowd.listening == 5
        await crowd.leave()
        assert crowd.listening == 0
        assert crowd.tally.finished >= 5
