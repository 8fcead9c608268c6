"""The tiny codec gives the reference's results, and nothing it hears later changes what it said before."""

import pytest
import torch
from torch import Tensor

from fish_engine.codec.config import CodecConfig
from fish_engine.codec.dac import Codec
from fish_engine.codec.layers import Layer

# The largest difference measured is 2e-6 of a sound whose peak is 0.8: float32 sums in another order.
TOLERANCE = 1e-5


@pytest.mark.parametrize(("codes", "sound"), [("codes", "audio"), ("random_codes", "random_audio")])
def test_codes_become_the_sound_of_the_reference(
    codec: Codec, golden: dict[str, Tensor], codes: str, sound: str
) -> None:
    decoded = codec.decode(golden[codes][None])[0, 0]
    torch.testing.assert_close(decoded, golden[sound], rtol=0, atol=TOLERANCE)


def test_sound_becomes_the_codes_of_the_reference(codec: Codec, golden: dict[str, Tensor]) -> None:
    assert torch.equal(codec.encode(golden["wav"][None, None])[0], golden["codes"])


def test_codes_of_a_beginning_are_the_beginning_of_the_codes(codec: Codec, golden: dict[str, Tensor]) -> None:
    beginning = golden["wav"][None, None, : 5 * codec.config.samples_per_frame]
    assert torch.equal(codec.encode(beginning)[0], golden["codes"][:, :5])


def test_recordings_may_be_encoded_together(codec: Codec, golden: dict[str, Tensor]) -> None:
    one = golden["wav"][None, None, :8192]
    other = golden["wav"][None, None, 8192:16384]
    assert torch.equal(codec.encode(torch.cat([one, other])), torch.cat([codec.encode(one), codec.encode(other)]))


def test_a_last_frame_is_filled_with_silence(codec: Codec, golden: dict[str, Tensor]) -> None:
    sound = golden["wav"][None, None, :3000]
    padded = torch.nn.functional.pad(sound, (0, 2 * codec.config.samples_per_frame - 3000))
    assert torch.equal(codec.encode(sound), codec.encode(padded))


def test_a_frame_never_changes_samples_before_it(codec: Codec, random_codes: Tensor, offline: Tensor) -> None:
    changed = random_codes.clone()
    changed[:, 20] = (changed[:, 20] + 1) % codec.config.residual_codebook_size
    start = 20 * codec.config.samples_per_frame
    decoded = codec.decode(changed[None])[0, 0]
    assert torch.equal(decoded[:start], offline[:start])
    assert not torch.equal(decoded[start:], offline[start:])


def test_a_code_past_the_end_of_its_codebook_counts_as_the_last(codec: Codec) -> None:
    beyond = torch.full((1, codec.config.codebooks, 3), 4095)
    untouched = beyond.clone()
    last = torch.tensor(codec.config.codebook_sizes)[None, :, None].expand(1, -1, 3) - 1
    assert torch.equal(codec.decode(beyond), codec.decode(last))
    assert torch.equal(beyond, untouched), "the caller's codes were changed"


def test_decoding_leaves_the_number_of_threads_alone(codec: Codec, random_codes: Tensor) -> None:
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        codec.decode(random_codes[None, :, :1])
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (torch.zeros(1, 9, 4, dtype=torch.long), r"\[batch, 10, frames\].*\[1, 9, 4\]"),
        (torch.zeros(1, 10, 0, dtype=torch.long), r"at least one frame.*\[1, 10, 0\]"),
        (torch.zeros(10, 4, dtype=torch.long), r"found \[10, 4\]"),
        (torch.full((1, 10, 2), -1), r"at least 0.*minimum -1"),
        (torch.zeros(1, 10, 2), r"integers.*float32"),
    ],
)
def test_codes_of_a_wrong_shape_or_kind_are_refused(codec: Codec, codes: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        codec.decode(codes)


@pytest.mark.parametrize(
    ("sound", "message"),
    [
        (torch.zeros(1, 2, 4096), r"\[batch, 1, samples\].*\[1, 2, 4096\]"),
        (torch.zeros(1, 1, 0), "at least one sample"),
        (torch.full((1, 1, 10), torch.nan), "finite"),
        (torch.full((1, 1, 10), torch.inf), "finite"),
    ],
)
def test_sound_of_a_wrong_shape_or_not_finite_is_refused(codec: Codec, sound: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        codec.encode(sound)


def test_the_true_sizes_have_as_many_tensors_and_parameters_as_published() -> None:
    with torch.device("meta"):
        codec = Codec(CodecConfig())
    shapes = [
        torch.Size(shape)
        for layer in codec.modules()
        if isinstance(layer, Layer)
        for shape in layer.published_shapes().values()
    ]
    assert len(shapes) == 535
    assert sum(shape.numel() for shape in shapes) == 391_430_530
