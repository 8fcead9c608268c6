"""A streamed decode equals the offline one, bit for bit, whatever the chunks and whoever else is in the batch."""

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fish_engine.codec.config import CodecConfig
from fish_engine.codec.dac import Codec
from fish_engine.codec.streaming import MAX_LANES, StreamingDecoder


def cut(codes: Tensor, sizes: Sequence[int]) -> list[Tensor]:
    """Cut codes into chunks of these sizes, over and over until none is left."""
    chunks, first = [], 0
    while first < codes.shape[1]:
        for size in sizes:
            chunks.append(codes[:, first : first + size])
            first += size
    return [chunk for chunk in chunks if chunk.shape[1]]


def streamed(decoder: StreamingDecoder, chunks: Sequence[Tensor]) -> Tensor:
    slot = decoder.open()
    sound = torch.cat([decoder.decode({slot: chunk})[slot] for chunk in chunks])
    decoder.close(slot)
    return sound


@pytest.mark.parametrize("size", [1, 2, 3, 7, 24])
def test_chunks_of_any_size_give_the_offline_samples(
    decoder: StreamingDecoder, random_codes: Tensor, offline: Tensor, size: int
) -> None:
    assert torch.equal(streamed(decoder, cut(random_codes, [size])), offline)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_number_of_threads_changes_no_sample(
    decoder: StreamingDecoder, random_codes: Tensor, offline: Tensor, threads: int
) -> None:
    """Alone, a frame's products have fewer lanes than there are threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert torch.equal(streamed(decoder, cut(random_codes, [1])), offline)
    finally:
        torch.set_num_threads(before)


@settings(max_examples=6, deadline=None)
@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=12))
def test_any_mixture_of_chunks_gives_the_offline_samples(
    codec: Codec, random_codes: Tensor, offline: Tensor, sizes: list[int]
) -> None:
    assert torch.equal(streamed(StreamingDecoder(codec, max_streams=1), cut(random_codes, sizes)), offline)


@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_streams_that_share_batches_from_different_places_do_not_touch_each_other(
    codec: Codec, data: st.DataObject
) -> None:
    """Four streams of their own lengths go at their own pace through three slots, the last where another ended."""
    seed = data.draw(st.integers(0, 2**32 - 1), label="seed")
    generator = torch.Generator().manual_seed(seed)
    lengths = data.draw(st.lists(st.integers(1, 12), min_size=4, max_size=4), label="lengths")
    waiting = [(name, torch.randint(0, 64, (10, length), generator=generator)) for name, length in enumerate(lengths)]
    whole = {name: codec.decode(codes[None])[0, 0] for name, codes in waiting}
    decoder = StreamingDecoder(codec, max_streams=3)
    running: dict[int, tuple[int, Tensor]] = {}  # slot: name, codes still to decode
    heard: dict[int, list[Tensor]] = {name: [] for name, _ in waiting}
    while waiting or running:
        while waiting and decoder.open_streams < 3:
            running[decoder.open()] = waiting.pop()
        sizes = {slot: data.draw(st.integers(0, 7), label=f"chunk {slot}") for slot in running}
        if not any(sizes.values()):
            sizes = dict.fromkeys(running, 1)
        chunks = {slot: running[slot][1][:, :size] for slot, size in sizes.items() if size}
        for slot, sound in decoder.decode(chunks).items():
            name, codes = running.pop(slot)
            heard[name].append(sound)
            rest = codes[:, chunks[slot].shape[1] :]
            if rest.shape[1]:
                running[slot] = (name, rest)
            else:
                decoder.close(slot)
    assert all(torch.equal(torch.cat(heard[name]), sound) for name, sound in whole.items())


def test_more_streams_than_are_decoded_in_one_go_all_get_their_samples(
    codec: Codec, random_codes: Tensor, offline: Tensor
) -> None:
    decoder = StreamingDecoder(codec, max_streams=5)
    slots = [decoder.open() for _ in range(5)]
    assert len(slots) * random_codes.shape[1] > MAX_LANES
    sound = decoder.decode(dict.fromkeys(slots, random_codes))
    assert all(torch.equal(sound[slot], offline) for slot in slots)


def test_a_slot_forgets_its_last_stream_even_if_that_was_poisoned(
    codec: Codec, random_codes: Tensor, offline: Tensor
) -> None:
    decoder = StreamingDecoder(codec, max_streams=1)
    slot = decoder.open()
    decoder._rows[slot].fill_(torch.nan)
    assert decoder.decode({slot: random_codes[:, :2]})[slot].isnan().any(), "the poison does not reach the sound"
    decoder.close(slot)
    assert torch.equal(streamed(decoder, [random_codes]), offline)


@pytest.mark.parametrize("poison", [torch.nan, torch.inf, -torch.inf])
def test_a_poisoned_stream_does_not_reach_its_neighbours(
    decoder: StreamingDecoder, random_codes: Tensor, offline: Tensor, poison: float
) -> None:
    slots = [decoder.open() for _ in range(3)]
    decoder._rows[slots[1]].fill_(poison)
    chunks = [decoder.decode(dict.fromkeys(slots, chunk)) for chunk in cut(random_codes, [7])]
    for slot in (slots[0], slots[2]):
        assert torch.equal(torch.cat([chunk[slot] for chunk in chunks]), offline)


def test_a_stream_far_along_needs_no_more_memory_than_a_new_one(
    decoder: StreamingDecoder, random_codes: Tensor
) -> None:
    slot = decoder.open()
    bytes_at_first = decoder.bytes_per_stream
    for _ in range(5):
        sound = decoder.decode({slot: random_codes})[slot]
    assert decoder.frames_decoded(slot) == 5 * random_codes.shape[1]
    assert torch.isfinite(sound).all()
    assert decoder.bytes_per_stream == bytes_at_first


def test_a_stream_of_the_true_sizes_carries_under_nine_megabytes() -> None:
    """127 keys and values of 8 layers, and 134 thousand samples of left context."""
    with torch.device("meta"):
        codec = Codec(CodecConfig())
    keys_and_values = 8 * 127 * 2 * 1024
    assert codec.decoding.size - keys_and_values == 134_208
    assert codec.decoding.size * 4 < 9e6


def test_a_bad_chunk_is_refused_before_any_stream_advances(decoder: StreamingDecoder, random_codes: Tensor) -> None:
    good, bad = decoder.open(), decoder.open()
    with pytest.raises(ValueError, match=r"\[batch, 10, frames\]"):
        decoder.decode({good: random_codes[:, :2], bad: random_codes[:3, :2]})
    assert decoder.frames_decoded(good) == 0


def test_slots_run_out_with_a_message_and_come_back_when_closed(decoder: StreamingDecoder) -> None:
    slots = [decoder.open() for _ in range(8)]
    with pytest.raises(ValueError, match="all 8 codec slots are open"):
        decoder.open()
    decoder.close(slots[3])
    assert decoder.open() == slots[3]


def test_a_slot_that_is_not_open_is_named(decoder: StreamingDecoder, random_codes: Tensor) -> None:
    slot = decoder.open()
    with pytest.raises(ValueError, match=rf"slot 99 is not open; open ones: \[{slot}\]"):
        decoder.decode({99: random_codes[:, :1]})
    decoder.close(slot)
    with pytest.raises(ValueError, match=f"slot {slot} is not open"):
        decoder.close(slot)
