"""Decoding many streams as their frames arrive: each stream is a slot, and a slot is a row of numbers and a position."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from fish_engine.codec.carried import Carried
from fish_engine.codec.dac import Codec, check_codes
from fish_engine.codec.lanes import one_thread_per_product

MAX_LANES = 32
"""Frames that are decoded in one go: more gain nothing and need memory, at the true sizes 20 MB each."""


class Sound(Protocol):
    """Samples that are there, or on their way."""

    def samples(self) -> Mapping[int, Tensor]:
        """Return the next samples by slot, on the host; wait for them if need be."""
        ...


@dataclass(frozen=True, slots=True)
class Decoded:
    """Sound that is there."""

    _samples: dict[int, Tensor]

    def samples(self) -> dict[int, Tensor]:
        """Return the next samples by slot."""
        return self._samples


class StreamingDecoder:
    """Decodes the next frames of up to `max_streams` streams, equal bit for bit on a CPU to decoding each one whole.

    Not safe for several threads at once: it belongs to the loop that feeds it.
    """

    has_latency: bool = False
    """Sound is not there yet when `launch` returns, so the caller had better do something else first."""

    def __init__(self, codec: Codec, *, max_streams: int) -> None:
        if max_streams < 1:
            raise ValueError(f"max_streams must be at least 1, found {max_streams}")
        self.codec = codec
        self.max_streams = max_streams
        self._rows = torch.zeros(max_streams, codec.decoding.size, device=codec.device)
        self._frames_decoded: dict[int, int] = {}  # by open slot
        self._free = list(range(max_streams - 1, -1, -1))

    @property
    def open_streams(self) -> int:
        """Slots in use."""
        return len(self._frames_decoded)

    @property
    def bytes_per_stream(self) -> int:
        """Memory that one slot holds, used or not."""
        return self._rows[0].nbytes

    def open(self) -> int:
        """Return a slot at the start of a new stream; raise ValueError when all are taken."""
        if not self._free:
            raise ValueError(f"all {self.max_streams} codec slots are open; close one first")
        slot = self._free.pop()
        self._rows[slot].zero_()
        self._frames_decoded[slot] = 0
        return slot

    def close(self, slot: int) -> None:
        """Give the slot back; what it remembered is forgotten."""
        self.frames_decoded(slot)
        del self._frames_decoded[slot]
        self._free.append(slot)

    def frames_decoded(self, slot: int) -> int:
        """Return how many frames of this stream have become sound; raise ValueError unless the slot is open."""
        if slot not in self._frames_decoded:
            raise ValueError(f"codec slot {slot} is not open; open ones: {sorted(self._frames_decoded)}")
        return self._frames_decoded[slot]

    def launch(self, chunks: Mapping[int, Tensor]) -> Sound:
        """Start decoding and return what will hold the samples; see `decode`."""
        return Decoded(self.decode(chunks))

    def decode(self, chunks: Mapping[int, Tensor]) -> dict[int, Tensor]:
        """Return the next samples [frames * samples_per_frame] by slot, of the next codes [codebooks, frames] by slot.

        Streams with equally many frames are decoded together. All chunks are checked before any stream advances.
        """
        by_frames: defaultdict[int, list[int]] = defaultdict(list)
        for slot, codes in chunks.items():
            self.frames_decoded(slot)
            check_codes(codes[None], self.codec.config)
            by_frames[codes.shape[1]].append(slot)
        sound: dict[int, Tensor] = {}
        with one_thread_per_product():
            for frames, slots in by_frames.items():
                for group in _groups(slots, max(1, MAX_LANES // frames)):
                    samples = self._decode_together(group, torch.stack([chunks[slot] for slot in group]))
                    sound.update(zip(group, samples.unbind(0), strict=True))
        return sound

    def _decode_together(self, slots: list[int], codes: Tensor) -> Tensor:
        """Advance these slots by codes [streams, codebooks, frames] and return samples [streams, samples]."""
        device, frames = self._rows.device, codes.shape[2]
        index = torch.tensor(slots, device=device)
        first_frames = torch.tensor([self._frames_decoded[slot] for slot in slots], device=device)
        carried = Carried(before=self._rows[index], first_frames=first_frames, frames=frames)
        samples = self.codec.decode_frames(codes.to(device), carried)
        self._rows[index] = carried.after
        for slot in slots:
            self._frames_decoded[slot] += frames
        return samples


def _groups(slots: list[int], size: int) -> list[list[int]]:
    return [slots[first : first + size] for first in range(0, len(slots), size)]
