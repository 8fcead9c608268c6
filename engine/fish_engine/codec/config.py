"""Sizes of a codec. The defaults are those of S2; a JSON file beside the weights describes any other."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fish_engine.errors import BadCheckpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformerConfig:
    """A windowed causal transformer: each position sees itself and `window - 1` earlier ones."""

    layers: int
    dim: int
    heads: int
    intermediate: int
    window: int
    rope_base: float = 10_000.0
    norm_eps: float = 1e-5

    def __post_init__(self) -> None:
        if self.dim % self.heads or (self.dim // self.heads) % 2:
            raise BadCheckpoint(f"codec transformer: dim {self.dim} must be {self.heads} heads of an even width")
        if self.window < 1:
            raise BadCheckpoint(f"codec transformer: window must be at least 1, found {self.window}")

    @property
    def head_dim(self) -> int:
        """Width of one head."""
        return self.dim // self.heads


@dataclass(frozen=True, slots=True, kw_only=True)
class CodecConfig:
    """Sizes of the whole codec; strides are in the order in which samples or frames meet them."""

    sample_rate_hz: int = 44_100
    encoder_channels: int = 64
    encoder_strides: tuple[int, ...] = (2, 4, 8, 8)
    encoder_transformers: tuple[TransformerConfig | None, ...] = (
        None,
        None,
        None,
        TransformerConfig(layers=4, dim=1024, heads=16, intermediate=3072, window=512),
    )
    decoder_channels: int = 1536
    decoder_strides: tuple[int, ...] = (8, 8, 4, 2)
    latent_dim: int = 1024
    resample_strides: tuple[int, ...] = (2, 2)
    frame_transformer: TransformerConfig = TransformerConfig(
        layers=8, dim=1024, heads=16, intermediate=3072, window=128
    )
    semantic_codebook_size: int = 4096
    residual_codebook_size: int = 1024
    residual_codebooks: int = 9
    code_dim: int = 8

    def __post_init__(self) -> None:
        encoded_dim = self.encoder_channels * 2 ** len(self.encoder_strides)
        if encoded_dim != self.latent_dim:
            raise BadCheckpoint(
                f"codec: the encoder ends {encoded_dim} wide ({self.encoder_channels} doubled at each of "
                f"{len(self.encoder_strides)} strides), but the quantiser takes {self.latent_dim}"
            )
        if math.prod(self.encoder_strides) != math.prod(self.decoder_strides):
            raise BadCheckpoint(
                f"codec: encoder strides {self.encoder_strides} and decoder strides {self.decoder_strides} "
                "must have the same product"
            )
        if len(self.encoder_transformers) != len(self.encoder_strides):
            raise BadCheckpoint(
                f"codec: encoder_transformer_layers needs one number per stride ({len(self.encoder_strides)}), "
                f"found {len(self.encoder_transformers)}"
            )

    @property
    def samples_per_frame(self) -> int:
        """Samples that one column of codes stands for."""
        return math.prod(self.encoder_strides) * math.prod(self.resample_strides)

    @property
    def codebook_sizes(self) -> tuple[int, ...]:
        """Entries of each codebook, semantic first."""
        return (self.semantic_codebook_size, *(self.residual_codebook_size,) * self.residual_codebooks)

    @property
    def codebooks(self) -> int:
        """Codes in one frame."""
        return 1 + self.residual_codebooks

    @property
    def frame_duration_s(self) -> float:
        """Seconds of sound in one frame."""
        return self.samples_per_frame / self.sample_rate_hz


def read_codec_config(folder: Path) -> CodecConfig:
    """Return the sizes of the codec in `folder`.

    `codec_config.json` wins; a `config.json` counts only if it describes a codec, because in a checkpoint folder that name
    belongs to the language model. With neither, the sizes are those of S2.
    """
    for name in ("codec_config.json", "config.json"):
        path = folder / name
        if not path.is_file():
            continue
        try:
            raw = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise BadCheckpoint(f"{path}: not JSON: {error}") from error
        if isinstance(raw, dict) and ("quantizer" in raw or name == "codec_config.json"):
            return _parsed(path, raw)
    return CodecConfig()


def _parsed(path: Path, raw: Mapping[str, object]) -> CodecConfig:
    keys = _Keys(path, raw)
    quantizer = keys.child("quantizer")
    frames = quantizer.child("transformer")
    windowed = keys.child("transformer")
    strides = keys.integers("encoder_rates")
    layer_counts = keys.integers("encoder_transformer_layers")
    channels = keys.integer("encoder_dim")
    return CodecConfig(
        sample_rate_hz=keys.integer("sample_rate"),
        encoder_channels=channels,
        encoder_strides=strides,
        encoder_transformers=tuple(
            _encoder_transformer(windowed, layers, channels * 2 ** (index + 1))
            for index, layers in enumerate(layer_counts)
        ),
        decoder_channels=keys.integer("decoder_dim"),
        decoder_strides=keys.integers("decoder_rates"),
        latent_dim=quantizer.integer("input_dim"),
        resample_strides=quantizer.integers("downsample_factor"),
        frame_transformer=TransformerConfig(
            layers=frames.integer("n_layer"),
            dim=frames.integer("dim"),
            heads=frames.integer("n_head"),
            intermediate=frames.integer("intermediate_size"),
            window=frames.integer("window_size"),
        ),
        semantic_codebook_size=quantizer.integer("semantic_codebook_size"),
        residual_codebook_size=quantizer.integer("codebook_size"),
        residual_codebooks=quantizer.integer("n_codebooks"),
        code_dim=quantizer.integer("codebook_dim"),
    )


def _encoder_transformer(windowed: "_Keys", layers: int, dim: int) -> TransformerConfig | None:
    if layers == 0:
        return None
    return TransformerConfig(
        layers=layers,
        dim=dim,
        heads=max(1, dim // windowed.integer("head_dim")),
        intermediate=3 * dim,
        window=windowed.integer("window_size"),
    )


class _Keys:
    """A JSON object that says which key is missing or of the wrong kind."""

    def __init__(self, path: Path, raw: Mapping[str, object], prefix: str = "") -> None:
        self._path = path
        self._raw = raw
        self._prefix = prefix

    def child(self, key: str) -> "_Keys":
        value = self._raw.get(key)
        if not isinstance(value, dict):
            raise self._wrong(key, "an object", value)
        return _Keys(self._path, value, f"{self._prefix}{key}.")

    def integer(self, key: str) -> int:
        value = self._raw.get(key)
        if not isinstance(value, int) or value < 1:
            raise self._wrong(key, "a positive integer", value)
        return value

    def integers(self, key: str) -> tuple[int, ...]:
        value = self._raw.get(key)
        if not isinstance(value, list) or not all(isinstance(item, int) and item >= 0 for item in value):
            raise self._wrong(key, "a list of integers", value)
        return tuple(value)

    def _wrong(self, key: str, expected: str, value: object) -> BadCheckpoint:
        return BadCheckpoint(f"{self._path}: {self._prefix}{key} must be {expected}, found {value!r}")
