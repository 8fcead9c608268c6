"""Faster and slower speech at the same pitch, as it is made: FFmpeg's `atempo`, which overlaps periods of the waveform."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from av.filter.graph import Graph

_SLOWEST_FILTER: Final = 0.5
"""One `atempo` goes no slower; two in a row do."""


class TimeStretch:
    """Samples in, fewer or more samples out."""

    def __init__(self, *, speed: float, rate_hz: int) -> None:
        self._rate_hz = rate_hz
        self._taken = 0
        self._graph = _graph(speed, rate_hz)

    def stretch(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return what is ready; the filter looks ahead by some hundredths of a second."""
        from av.audio.frame import AudioFrame  # noqa: PLC0415

        frame = AudioFrame.from_ndarray(np.ascontiguousarray(samples[None]), format="flt", layout="mono")
        frame.sample_rate = self._rate_hz
        frame.pts = self._taken
        self._taken += len(samples)
        self._graph.push(frame)
        return self._pulled()

    def finish(self) -> NDArray[np.float32]:
        """Return the rest."""
        if not self._taken:  # the filter would fail where it has seen nothing
            return np.zeros(0, np.float32)
        self._graph.push(None)
        return self._pulled()

    def _pulled(self) -> NDArray[np.float32]:
        from av.audio.frame import AudioFrame  # noqa: PLC0415
        from av.error import BlockingIOError as NothingYet  # noqa: PLC0415
        from av.error import EOFError as NothingMore  # noqa: PLC0415

        pieces = [np.zeros(0, np.float32)]
        try:
            while True:
                frame = self._graph.pull()
                assert isinstance(frame, AudioFrame)
                pieces.append(frame.to_ndarray()[0])
        except (NothingYet, NothingMore):
            return np.concatenate(pieces)


def _graph(speed: float, rate_hz: int) -> Graph:
    from av.filter.graph import Graph  # noqa: PLC0415

    graph = Graph()
    source = graph.add_abuffer(sample_rate=rate_hz, format="flt", layout="mono", name="in")
    tempos = [speed] if speed >= _SLOWEST_FILTER else [_SLOWEST_FILTER, speed / _SLOWEST_FILTER]
    filters = [graph.add("atempo", f"{tempo:.6f}") for tempo in tempos]
    nodes = [source, *filters, graph.add("abuffersink")]
    for earlier, later in pairwise(nodes):
        earlier.link_to(later)
    graph.configure()
    return graph
