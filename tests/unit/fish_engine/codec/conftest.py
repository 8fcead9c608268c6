"""The tiny codec and its golden results, loaded once."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from fish_engine.codec.dac import Codec
from fish_engine.codec.streaming import StreamingDecoder
from fish_engine.codec.weights import load_codec

FOLDER = Path(__file__).parents[3] / "golden" / "codec_tiny"


@pytest.fixture(scope="session")
def codec_folder() -> Path:
    return FOLDER


@pytest.fixture(scope="session")
def codec() -> Codec:
    return load_codec(FOLDER)


@pytest.fixture(scope="session")
def golden() -> dict[str, Tensor]:
    return load_file(FOLDER / "golden.safetensors")


@pytest.fixture
def decoder(codec: Codec) -> StreamingDecoder:
    return StreamingDecoder(codec, max_streams=8)


@pytest.fixture(scope="session")
def random_codes(golden: dict[str, Tensor]) -> Tensor:
    """Codes of 24 frames, half as many again as the window of the tiny codec, [codebooks, frames]."""
    return golden["random_codes"][:, :24]


@pytest.fixture(scope="session")
def offline(codec: Codec, random_codes: Tensor) -> Tensor:
    """The sound of `random_codes`, decoded whole."""
    sound = codec.decode(random_codes[None])[0, 0]
    assert torch.isfinite(sound).all()
    return sound
