"""Which file gives a codec its sizes, and what is said when it cannot."""

import json
from pathlib import Path

import pytest

from fish_engine.codec.config import CodecConfig, TransformerConfig, read_codec_config
from fish_engine.errors import BadCheckpoint


@pytest.fixture
def tiny(codec_folder: Path) -> dict[str, object]:
    raw: dict[str, object] = json.loads((codec_folder / "config.json").read_text())
    return raw


def written(folder: Path, raw: object, name: str = "codec_config.json") -> Path:
    (folder / name).write_text(json.dumps(raw))
    return folder


def test_the_tiny_codec_has_the_sizes_of_its_file(codec_folder: Path) -> None:
    config = read_codec_config(codec_folder)
    assert config.samples_per_frame == 2048
    assert config.codebook_sizes == (128, *[64] * 9)
    assert config.frame_transformer == TransformerConfig(layers=2, dim=128, heads=2, intermediate=192, window=16)
    assert config.encoder_transformers[:3] == (None, None, None)
    assert config.encoder_transformers[3] == TransformerConfig(layers=2, dim=128, heads=2, intermediate=384, window=512)


def test_without_a_file_the_sizes_are_those_of_s2(tmp_path: Path) -> None:
    config = read_codec_config(tmp_path)
    assert config == CodecConfig()
    assert (config.samples_per_frame, config.codebooks, config.sample_rate_hz) == (2048, 10, 44_100)
    assert config.frame_duration_s == pytest.approx(0.04644, abs=1e-5)


def test_the_config_of_a_language_model_is_not_taken_for_a_codecs(tmp_path: Path) -> None:
    written(tmp_path, {"model_type": "fish_qwen3_omni", "text_config": {}}, "config.json")
    assert read_codec_config(tmp_path) == CodecConfig()


def test_codec_config_wins_over_config(tmp_path: Path, tiny: dict[str, object]) -> None:
    written(tmp_path, tiny, "config.json")
    written(tmp_path, tiny | {"sample_rate": 24_000})
    assert read_codec_config(tmp_path).sample_rate_hz == 24_000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sample_rate": "44100"}, r"sample_rate must be a positive integer, found '44100'"),
        ({"sample_rate": None}, r"sample_rate must be a positive integer, found None"),
        ({"encoder_rates": 4}, r"encoder_rates must be a list of integers, found 4"),
        ({"quantizer": {}}, r"quantizer\.transformer must be an object, found None"),
        ({"encoder_dim": 16}, r"the encoder ends 256 wide .* but the quantiser takes 128"),
        ({"decoder_rates": [8, 8, 4, 4]}, r"must have the same product"),
        ({"encoder_transformer_layers": [2]}, r"one number per stride \(4\), found 1"),
    ],
)
def test_a_size_that_cannot_be_is_named(
    tmp_path: Path, tiny: dict[str, object], change: dict[str, object], message: str
) -> None:
    with pytest.raises(BadCheckpoint, match=message):
        read_codec_config(written(tmp_path, tiny | change))


def test_a_file_that_is_not_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "codec_config.json").write_text("{")
    with pytest.raises(BadCheckpoint, match=r"codec_config\.json: not JSON"):
        read_codec_config(tmp_path)


@pytest.mark.parametrize(
    ("heads", "window", "message"), [(3, 4, "must be 3 heads of an even width"), (2, 0, "window must be at least 1")]
)
def test_a_transformer_that_cannot_be_is_refused(heads: int, window: int, message: str) -> None:
    with pytest.raises(BadCheckpoint, match=message):
        TransformerConfig(layers=1, dim=128, heads=heads, intermediate=4, window=window)
