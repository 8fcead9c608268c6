"""Writing sound without keeping others waiting: what takes longer than a hop to a thread is done on one."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fish_engine.audio.writer import Sounding, SoundWriter

# Its own threads: the loop's are taken for seconds when references are encoded.
_ENCODERS: Final = ThreadPoolExecutor(thread_name_prefix="encoder")


class OffloadingWriter:
    """A `SoundWriter` for an event loop that serves many. One call at a time."""

    def __init__(self, sounding: Sounding, *, source_rate_hz: int) -> None:
        self._writer = SoundWriter(sounding, source_rate_hz=source_rate_hz)
        # PCM takes some 20 us a frame, mp3 almost a millisecond.
        self._is_offloaded = bool(sounding.encoding.format.bit_rates_bps)

    @property
    def sound_s(self) -> float:
        """Seconds of sound in the file so far."""
        return self._writer.sound_s

    async def write(self, samples: NDArray[np.float32]) -> bytes:
        """Return what of the file these samples complete."""
        if self._is_offloaded:
            return await asyncio.get_running_loop().run_in_executor(_ENCODERS, self._writer.write, samples)
        return self._writer.write(samples)

    async def finish(self) -> bytes:
        """Return the rest of the file."""
        if self._is_offloaded:
            return await asyncio.get_running_loop().run_in_executor(_ENCODERS, self._writer.finish)
        return self._writer.finish()
