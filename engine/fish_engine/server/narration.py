"""What a client is going to hear: the parts of a text, said one after another."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from fish_engine.engine import Audio, Event, Failed, Finished
from fish_engine.errors import EngineError
from fish_engine.model.prompt import Turn
from fish_engine.server.speech import Speaker
from fish_engine.service import Service
from fish_engine.text.pronounceable import is_pronounceable

_SILENCE_S: Final = 0.2
Samples = NDArray[np.float32]


class Narration:
    """A voice that says parts of a text as it is told. Leaving the `async with` early gives up what has not ended.

    Each part follows from the one before, in how it is said and in how it is drawn.
    """

    def __init__(self, service: Service, speaker: Speaker) -> None:
        self.positions_read = 0
        """Columns of all prompts."""
        self.frames_made = 0
        self._service = service
        self._speaker = speaker
        self._loop = asyncio.get_running_loop()
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._request_id: int | None = None
        self._index = 0
        self._before: Turn | None = None

    @property
    def part_chars(self) -> int:
        """Longest part that it takes."""
        return self._speaker.part_chars

    @property
    def sample_rate_hz(self) -> int:
        """Rate of the samples that it yields."""
        return self._speaker.loaded.codec.config.sample_rate_hz

    @property
    def is_speaking(self) -> bool:
        """A part has been begun and not ended."""
        return self._request_id is not None

    def held(self) -> AbstractContextManager[None]:
        """Keep the engine from stopping between two parts."""
        return self._service.held()

    async def __aenter__(self) -> Self:
        """Nothing to wait for."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Give up the part that is being said."""
        if self._request_id is not None:
            self._service.cancel(self._request_id)

    async def say(self, part: str, *, is_continuation: bool) -> AsyncIterator[Samples]:
        """Yield samples in -1 .. 1 until the part is said.

        Raises:
            BadRequest, Overloaded, Draining: as `Service.submit`.
            EngineError: the engine gave it up.
        """
        speech = self._speaker.speech(part, index=self._index, before=self._before)
        self._request_id = self._service.submit(speech, self._on_event, is_continuation=is_continuation)
        self.positions_read += len(speech.prompt)
        while isinstance(event := await self._events.get(), Audio):
            yield event.samples.numpy()
        self._request_id = None
        if isinstance(event, Failed):
            raise EngineError(event.message)
        self._follow(part, event)

    def _follow(self, part: str, ending: Finished) -> None:
        self._index += 1
        self.frames_made += ending.codes.shape[1]
        self._before = Turn(text=part, codes=ending.codes)

    def _on_event(self, event: Event) -> None:
        """Hand over from the engine's thread."""
        self._loop.call_soon_threadsafe(self._events.put_nowait, event)


async def recital(narration: Narration, parts: Sequence[str]) -> AsyncIterator[Samples]:
    """Yield the sound of all parts of a text that has something to say."""
    sayable = [part for part in parts if is_pronounceable(part)]
    for index, part in enumerate(sayable):
        async for samples in narration.say(part, is_continuation=index > 0):
            yield samples


def silence(sample_rate_hz: int) -> Samples:
    """Return what a text without anything to say sounds like: short, and no error, because chat clients send such texts all the time."""
    return np.zeros(int(_SILENCE_S * sample_rate_hz), dtype=np.float32)
