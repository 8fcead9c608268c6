"""The codec's decoder for a GPU, run in float32 on a CPU: other layouts, pieces and paddings, the same sound up to rounding."""

import pytest
import torch

from fish_engine.codec.carried import Carried
from fish_engine.codec.streaming import StreamingDecoder
from fish_engine.gpu.loading import graph_decoder
from fish_engine.gpu.vocoder import Vocoder, squared_sine

ROUNDING = 1e-5
"""The same bound that a streamed decode has against the golden sound."""


@pytest.fixture(scope="module")
def codes(codec):
    sizes = torch.tensor(codec.config.codebook_sizes)[:, None]
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, 10_000, (3, codec.config.codebooks, 37), generator=generator) % sizes


@pytest.mark.parametrize("chunks", [(37,), (1, 1, 2, 4, 8, 16, 5)])
def test_the_vocoder_sounds_like_the_codec_for_any_chunking(codec, codes, chunks):
    vocoder = Vocoder(codec, dtype=torch.float32)
    carried = Carried.at_start(codec.decoding, streams=len(codes), device=codec.device)
    pieces = []
    for chunk in torch.split(codes, chunks, dim=2):
        carried = carried.followed_by(chunk.shape[2])
        pieces.append(vocoder.decode_frames(chunk, carried))
    torch.testing.assert_close(torch.cat(pieces, dim=1), codec.decode(codes)[:, 0], atol=ROUNDING, rtol=0)


def test_bfloat16_products_stay_forty_decibels_below_the_sound(codec, codes):
    vocoder = Vocoder(codec, dtype=torch.bfloat16)
    carried = Carried.at_start(codec.decoding, streams=len(codes), device=codec.device).followed_by(codes.shape[2])
    exact = codec.decode(codes)[:, 0]
    error = vocoder.decode_frames(codes, carried) - exact
    assert error.norm() / exact.norm() < 0.02


def test_streams_with_chunks_of_any_length_are_decoded_each_in_its_place(codec, codes):
    plain = StreamingDecoder(codec, max_streams=3)
    graphed = graph_decoder(codec, max_streams=3)
    slots = [(plain.open(), graphed.open()) for _ in codes]
    at = [0, 0, 0]
    for lengths in ((1, 3, 0), (2, 0, 16), (5, 19, 1), (1, 1, 1)):
        chunks = {row: codes[row][:, at[row] : at[row] + length] for row, length in enumerate(lengths) if length}
        expected = plain.launch({slots[row][0]: chunk for row, chunk in chunks.items()}).samples()
        found = graphed.launch({slots[row][1]: chunk for row, chunk in chunks.items()}).samples()
        for row, length in enumerate(lengths):
            at[row] += length
            if length:
                torch.testing.assert_close(found[slots[row][1]], expected[slots[row][0]], atol=ROUNDING, rtol=0)
            assert graphed.frames_decoded(slots[row][1]) == at[row]


def test_a_slot_that_is_opened_again_remembers_nothing(codec, codes):
    decoder = graph_decoder(codec, max_streams=1)
    first = decoder.open()
    heard = decoder.launch({first: codes[0]}).samples()[first]
    decoder.close(first)
    again = decoder.open()
    assert torch.equal(decoder.launch({again: codes[0]}).samples()[again], heard)


def test_the_polynomial_is_the_squared_sine():
    x = torch.linspace(-50, 50, 100_001)
    assert (squared_sine(x) - x.double().sin().square()).abs().max() < 5e-6
