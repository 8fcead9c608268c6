"""People who listen: each starts a stream, hears it to its end, and starts the next."""

import asyncio
import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import httpx

from fish_local.demo.engines import EngineDirectory

WAV_HEADER_BYTES: Final = 44
RETRY_DELAY_S: Final = 0.2
# A stream may queue behind a whole burst while engines start on two busy cores.
TIMEOUT: Final = httpx.Timeout(120, connect=2)
# An engine that is full or on its way out says so, and another one may take the stream.
TURNED_AWAY: Final = frozenset({httpx.codes.TOO_MANY_REQUESTS, httpx.codes.SERVICE_UNAVAILABLE})
# Random weights end a stream whenever they like; the cap keeps one listener from holding a slot for minutes.
MAX_FRAMES: Final = 128

SENTENCES: Final = (
    "The quick brown fox jumps over the lazy dog.",
    "Your table for four is ready at half past seven.",
    "Please hold the line, somebody will be with you shortly.",
    "Turn left after the bridge, then follow the river for a mile.",
    "Rain is expected in the north, with sunshine along the coast.",
)


@dataclass(slots=True)
class Tally:
    """What the listeners met. `cut` counts streams that an engine took and did not finish: it must stay zero."""

    finished: int = 0
    cut: int = 0
    turned_away: int = 0
    first_audio_s: list[float] = field(default_factory=list)


@dataclass(slots=True)
class Crowd:
    """A changing number of listeners over one HTTP client."""

    engines: EngineDirectory
    client: httpx.AsyncClient
    tally: Tally = field(default_factory=Tally)
    wanted: int = 0
    _seeds: Iterator[int] = field(default_factory=itertools.count)
    _listeners: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def listening(self) -> int:
        """Return how many listeners there are, those that only finish their last stream included."""
        return len(self._listeners)

    def resize(self, wanted: int) -> None:
        """Let listeners come, or leave after the stream that they hear."""
        self.wanted = wanted
        for position in range(len(self._listeners), wanted):
            task = asyncio.create_task(self._listen(), name=f"listener-{position}")
            self._listeners.add(task)
            task.add_done_callback(self._listeners.discard)

    async def leave(self) -> None:
        """Let every stream end, then return."""
        self.wanted = 0
        await asyncio.gather(*self._listeners)

    async def _listen(self) -> None:
        while True:
            seed = next(self._seeds)
            await self._hear(SENTENCES[seed % len(SENTENCES)], seed)
            if len(self._listeners) > self.wanted:
                return

    async def _hear(self, text: str, seed: int) -> None:
        """Hear one sentence, asking again where an engine turns us away before it has begun."""
        asked_at_s = time.monotonic()
        while True:
            with self.engines.least_busy() as base_url:
                if base_url is not None and await self._stream(base_url, text, seed, asked_at_s):
                    return
            await asyncio.sleep(RETRY_DELAY_S)

    async def _stream(self, base_url: str, text: str, seed: int, asked_at_s: float) -> bool:
        """Run one request; return whether an engine took it: once it did, it counts as heard or as cut, queued or not."""
        body = {"text": text, "format": "wav", "streaming": True, "seed": seed, "max_new_tokens": MAX_FRAMES}
        try:
            async with self.client.stream("POST", f"{base_url}/v1/tts", json=body, timeout=TIMEOUT) as response:
                if response.status_code in TURNED_AWAY:
                    self.tally.turned_away += 1
                    return False
                response.raise_for_status()
                await self._drain(response, asked_at_s)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            self.tally.turned_away += 1
            return False
        except httpx.HTTPError:
            self.tally.cut += 1
        return True

    async def _drain(self, response: httpx.Response, asked_at_s: float) -> None:
        received_bytes = 0
        async for chunk in response.aiter_bytes():
            if received_bytes <= WAV_HEADER_BYTES < received_bytes + len(chunk):
                self.tally.first_audio_s.append(time.monotonic() - asked_at_s)
            received_bytes += len(chunk)
        if received_bytes > WAV_HEADER_BYTES:
            self.tally.finished += 1
        else:
            self.tally.cut += 1
