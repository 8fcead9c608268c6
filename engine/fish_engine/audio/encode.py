"""Samples to the bytes of one file, as they come: one encoder from the first sample to the last.

FFmpeg (through PyAV) does all that is not plain PCM. It is imported when the first client wants it, not at the start.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from fish_engine.audio.formats import Encoding
from fish_engine.audio.wav import pcm16, wav_header

if TYPE_CHECKING:
    from av.audio.stream import AudioStream

Samples = NDArray[np.float32]


class Encoder(Protocol):
    """Makes one file."""

    def encode(self, samples: Samples) -> bytes:
        """Return what of the file these samples complete; it may be nothing yet."""
        ...

    def finish(self) -> bytes:
        """Return the rest of the file."""
        ...


def encoder_for(encoding: Encoding) -> Encoder:
    """Return a new encoder at the start of its file."""
    match encoding.format.name:
        case "pcm":
            return PcmEncoder(header=b"")
        case "wav":
            return PcmEncoder(header=wav_header(sample_rate_hz=encoding.rate_hz, data_bytes=None))
        case _:
            return FFmpegEncoder(encoding)


class PcmEncoder:
    """16-bit PCM after a header that is known beforehand."""

    def __init__(self, *, header: bytes) -> None:
        self._header = header

    def encode(self, samples: Samples) -> bytes:
        """Return the samples, after the header if they are the first."""
        if not len(samples):
            return b""
        header, self._header = self._header, b""
        return header + pcm16(samples)

    def finish(self) -> bytes:
        """Return the header if there was no sound at all."""
        header, self._header = self._header, b""
        return header


class FFmpegEncoder:
    """Any format that FFmpeg can write into something that cannot be rewound."""

    def __init__(self, encoding: Encoding) -> None:
        import av  # noqa: PLC0415

        self._rate_hz = encoding.rate_hz
        self._sink = _Sink()
        self._container = av.open(
            self._sink,
            "w",
            format=encoding.format.container,
            options={"flush_packets": "1", **dict(encoding.format.options)},
        )
        stream = self._container.add_stream(
            encoding.format.codec, rate=encoding.rate_hz, options=dict(encoding.format.codec_options)
        )
        self._stream = cast("AudioStream", stream)
        self._stream.layout = "mono"
        if encoding.bit_rate_bps is not None:
            self._stream.bit_rate = encoding.bit_rate_bps
        self._samples_taken = 0

    def encode(self, samples: Samples) -> bytes:
        """Return what has become whole frames of the format."""
        from av.audio.frame import AudioFrame  # noqa: PLC0415

        if len(samples):
            pcm = np.frombuffer(pcm16(samples), np.int16)[None]
            frame = AudioFrame.from_ndarray(pcm, format="s16", layout="mono")
            frame.sample_rate = self._rate_hz
            frame.pts = self._samples_taken
            self._samples_taken += len(samples)
            self._container.mux(self._stream.encode(frame))
        return self._sink.taken()

    def finish(self) -> bytes:
        """Return what the encoder has held back, and the end of the file."""
        self._container.mux(self._stream.encode(None))
        self._container.close()
        return self._sink.taken()


class _Sink(io.RawIOBase):
    """A file that is sent away as it is written."""

    def __init__(self) -> None:
        super().__init__()
        self._written = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]  # FFmpeg gives bytes
        self._written += data
        return len(data)

    def taken(self) -> bytes:
        """Return what was written since the last call."""
        taken = bytes(self._written)
        self._written.clear()
        return taken
