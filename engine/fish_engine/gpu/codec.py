"""Streaming decode on a GPU: a recorded graph for each number of streams and frames, and no waiting for samples."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

import torch
from torch import Tensor

from fish_engine.codec.carried import Carried
from fish_engine.codec.dac import Codec, check_codes
from fish_engine.codec.streaming import StreamingDecoder
from fish_engine.gpu.transfer import Arrival, downloading, uploaded
from fish_engine.gpu.vocoder import Vocoder

FRAME_BUCKETS: Final = (16, 8, 4, 2, 1)
"""A chunk is decoded in pieces of these sizes."""
MAX_LANES: Final = 128
"""Frames in one go: enough to fill the device, and 20 MB of intermediate results each at the true sizes."""


class Record(Protocol):
    """What turns work on the device into a replay of it."""

    def __call__(self, run: Callable[[], None], /) -> Callable[[], None]:
        """Return what does the same as `run`."""
        ...


def unrecorded(run: Callable[[], None], /) -> Callable[[], None]:
    """Return the work itself: for machines without a GPU."""
    return run


class CodecStep:
    """The decode of the next `frames` frames of `streams` streams, in buffers that stay where they are."""

    def __init__(self, vocoder: Vocoder, codec: Codec, rows: Tensor, *, streams: int, frames: int) -> None:
        """Take the streams' carried `rows` [slots, numbers]."""
        config, device = codec.config, codec.device
        self._vocoder = vocoder
        self._rows = rows
        self._frames = frames
        self.places = torch.zeros(2, streams, dtype=torch.int64, device=device)
        """Slots, and frames that came before."""
        self.codes = torch.zeros(streams, config.codebooks, frames, dtype=torch.int64, device=device)
        self.samples = torch.zeros(streams, frames * config.samples_per_frame, device=device)

    def run(self) -> None:
        """Advance the streams in `places` by `codes` and leave their sound in `samples`."""
        slots, first_frames = self.places.unbind(0)
        carried = Carried(before=self._rows[slots], first_frames=first_frames, frames=self._frames)
        self.samples.copy_(self._vocoder.decode_frames(self.codes, carried))
        self._rows[slots] = carried.after


class ArrivingSound:
    """Samples on their way to the host."""

    def __init__(self, pieces: Sequence[tuple[Sequence[int], Tensor]], device: torch.device) -> None:
        """Take pieces in order of time, each the slots and their samples [streams, samples]."""
        self._pieces = pieces
        self._arrival = Arrival(device)

    def samples(self) -> dict[int, Tensor]:
        """Return the next samples by slot; wait for them if need be."""
        self._arrival.wait()
        by_slot: defaultdict[int, list[Tensor]] = defaultdict(list)
        for slots, samples in self._pieces:
            for slot, row in zip(slots, samples.unbind(0), strict=True):
                by_slot[slot].append(row)
        return {slot: torch.cat(rows) for slot, rows in by_slot.items()}


class GraphDecoder(StreamingDecoder):
    """Decodes by recorded graphs. Chunks and batches change last bits, as everything does that a GPU adds up."""

    has_latency = True

    def __init__(
        self,
        codec: Codec,
        vocoder: Vocoder,
        *,
        max_streams: int,
        record: Record,
    ) -> None:
        """Prepare every size of batch that up to `max_streams` streams can make. One slot more is kept for padding."""
        super().__init__(codec, max_streams=max_streams + 1)
        self._padding_slot = self.open()
        self._steps: dict[tuple[int, int], tuple[CodecStep, Callable[[], None]]] = {}
        for frames in FRAME_BUCKETS:
            streams = max(1, min(MAX_LANES // frames, _bucket(max_streams)))
            while streams:
                step = CodecStep(vocoder, codec, self._rows, streams=streams, frames=frames)
                step.places[0] = self._padding_slot
                self._steps[frames, streams] = step, record(step.run)
                streams //= 2

    @torch.no_grad()
    def launch(self, chunks: Mapping[int, Tensor]) -> ArrivingSound:
        """Start decoding; see `StreamingDecoder.decode`."""
        for codes in chunks.values():
            check_codes(codes[None], self.codec.config)
        pieces: list[tuple[Sequence[int], Tensor]] = []
        rest = dict(chunks)
        for frames in FRAME_BUCKETS:
            while slots := [slot for slot, codes in rest.items() if codes.shape[1] >= frames]:
                group = slots[: max(1, MAX_LANES // frames)]
                pieces.append((group, self._replay(group, torch.stack([rest[slot][:, :frames] for slot in group]))))
                rest.update({slot: rest[slot][:, frames:] for slot in group})
        return ArrivingSound(pieces, self.codec.device)

    def _replay(self, slots: Sequence[int], codes: Tensor) -> Tensor:
        """Advance these slots by codes [streams, codebooks, frames]; return where their samples will be on the host."""
        frames, padding = codes.shape[2], _bucket(len(slots)) - len(slots)
        step, run = self._steps[frames, len(slots) + padding]
        first_frames = [self.frames_decoded(slot) for slot in slots] + [0] * padding
        places = torch.tensor([[*slots, *[self._padding_slot] * padding], first_frames])
        step.places.copy_(uploaded(places, self.codec.device))
        step.codes[: len(slots)] = uploaded(codes, self.codec.device)
        run()
        for slot in slots:
            self._frames_decoded[slot] += frames
        return downloading(step.samples[: len(slots)])


def _bucket(streams: int) -> int:
    """Return the smallest power of two that is not below."""
    return 1 << (streams - 1).bit_length()
