"""Loading a codec: every wrapping in which it is published, and every fault by name."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from fish_engine.codec.dac import Codec
from fish_engine.codec.weights import WEIGHTS_NAME, load_codec
from fish_engine.errors import BadCheckpoint

Tensors = dict[str, Tensor]


@pytest.fixture(scope="session")
def published(codec_folder: Path) -> Tensors:
    return torch.load(codec_folder / WEIGHTS_NAME, weights_only=True)


@pytest.fixture
def folder_of(codec_folder: Path, tmp_path: Path) -> Callable[[object], Path]:
    """Write something as `codec.pth` beside the tiny codec's sizes."""

    def write(content: object) -> Path:
        shutil.copy(codec_folder / "config.json", tmp_path / "codec_config.json")
        torch.save(content, tmp_path / WEIGHTS_NAME)
        return tmp_path

    return write


@pytest.mark.parametrize(
    "wrapped",
    [
        lambda tensors: tensors,
        lambda tensors: {"state_dict": tensors, "epoch": 3},
        lambda tensors: (
            {f"generator.{name}": tensor for name, tensor in tensors.items()} | {"discriminator.weight": torch.zeros(2)}
        ),
        lambda tensors: tensors | {"semantic_predictor.layers.0.weight": torch.zeros(3)},
        lambda tensors: {name: tensor.double() for name, tensor in tensors.items()},
    ],
    ids=["plain", "state_dict", "generator", "extra tensors", "float64"],
)
def test_every_published_wrapping_gives_the_same_codec(
    wrapped: Callable[[Tensors], object],
    published: Tensors,
    folder_of: Callable[[object], Path],
    random_codes: Tensor,
    offline: Tensor,
) -> None:
    loaded = load_codec(folder_of(wrapped(published)))
    few = offline[: 3 * loaded.config.samples_per_frame]
    assert torch.equal(loaded.decode(random_codes[None, :, :3])[0, 0], few)


def test_the_file_itself_may_be_named(codec_folder: Path, codec: Codec) -> None:
    assert load_codec(codec_folder / WEIGHTS_NAME).config == codec.config


def test_every_missing_and_misshapen_tensor_is_named_with_its_shape(
    published: Tensors, folder_of: Callable[[object], Path]
) -> None:
    faulty = dict(published)
    del faulty["decoder.model.0.conv.parametrizations.weight.original1"]
    del faulty["quantizer.quantizer.quantizers.8.codebook.weight"]
    faulty["quantizer.post_module.layers.1.attention.wo.weight"] = torch.zeros(64, 128)
    with pytest.raises(BadCheckpoint) as raised:
        load_codec(folder_of(faulty))
    message = str(raised.value)
    assert "3 tensors do not fit" in message
    assert "decoder.model.0.conv.parametrizations.weight.original1: missing, expected [64, 128, 7]" in message
    assert "quantizer.quantizer.quantizers.8.codebook.weight: missing, expected [64, 8]" in message
    assert "quantizer.post_module.layers.1.attention.wo.weight: expected [128, 128], found [64, 128]" in message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1, 2], "expected a dictionary of tensors, found list"),
        ({"epoch": 3}, "tensors do not fit"),
        (Path("x"), "not a torch file of plain tensors"),
    ],
    ids=["list", "no tensors", "an object"],
)
def test_a_file_of_something_else_is_refused(
    content: object, message: str, folder_of: Callable[[object], Path]
) -> None:
    with pytest.raises(BadCheckpoint, match=message):
        load_codec(folder_of(content))


def test_a_file_that_torch_cannot_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / WEIGHTS_NAME).write_bytes(b"RIFF....WAVE")
    with pytest.raises(BadCheckpoint, match=r"codec\.pth: not a torch file"):
        load_codec(tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadCheckpoint, match=r"codec\.pth: no such file"):
        load_codec(tmp_path)
