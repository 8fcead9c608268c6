"""Sizes of a DualAR checkpoint, read from its `config.json`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fish_engine.errors import BadCheckpoint

MODEL_TYPE: Final = "fish_qwen3_omni"


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformerConfig:
    """Sizes of one stack of blocks. No block of this family has a bias on its linears."""

    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    dim: int
    intermediate_dim: int
    rope_base: float
    norm_eps: float
    max_positions: int
    has_qk_norm: bool

    def __post_init__(self) -> None:
        """Refuse sizes that no checkpoint can have."""
        if self.heads % self.kv_heads:
            raise BadCheckpoint(f"n_head {self.heads} must be a multiple of n_local_heads {self.kv_heads}")
        if self.head_dim % 2:
            raise BadCheckpoint(f"head_dim {self.head_dim} must be even, because rotary embedding turns pairs")

    @property
    def qkv_rows(self) -> int:
        """Rows of the fused projection: queries, keys, values, in that order."""
        return (self.heads + 2 * self.kv_heads) * self.head_dim


@dataclass(frozen=True, slots=True, kw_only=True)
class DualARConfig:
    """Sizes of the slow model (along time), the fast model (along depth), and the ids that tie them together."""

    slow: TransformerConfig
    fast: TransformerConfig
    vocab_size: int
    codebook_count: int
    codebook_size: int
    semantic_begin_id: int
    semantic_end_id: int

    def __post_init__(self) -> None:
        """Refuse a semantic range that is not one id for each entry of codebook 0."""
        ids = self.semantic_end_id - self.semantic_begin_id + 1
        if ids != self.codebook_size:
            raise BadCheckpoint(
                f"semantic ids {self.semantic_begin_id}..{self.semantic_end_id} are {ids}, "
                f"but codebook 0 has {self.codebook_size} entries: expected one id for each"
            )
        if self.semantic_end_id >= self.vocab_size:
            raise BadCheckpoint(
                f"semantic_end_token_id {self.semantic_end_id} must be below vocab_size {self.vocab_size}"
            )

    @property
    def column_rows(self) -> int:
        """Integers of one position: the main token, then one code a codebook."""
        return 1 + self.codebook_count


def read_config(path: Path) -> DualARConfig:
    """Read `config.json` of the published format.

    Raises:
        BadCheckpoint: not JSON, another model type, a missing key, or a feature that no published checkpoint uses.
    """
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise BadCheckpoint(f"{path} does not exist: a checkpoint is a folder with config.json in it") from error
    except ValueError as error:
        raise BadCheckpoint(f"{path} is not JSON: {error}") from error
    top = _Section(raw, path.name)
    model_type = top.raw.get("model_type")
    if model_type != MODEL_TYPE:
        raise BadCheckpoint(f"{path}: model_type is {model_type!r}, expected {MODEL_TYPE!r}")
    text, audio = top.section("text_config"), top.section("audio_decoder_config")
    if not text.flag("tie_word_embeddings", default=True):
        raise BadCheckpoint(
            f"{path}: tie_word_embeddings is false, expected true: the head of this model is its embedding"
        )
    slow = _transformer(text, fallback=None)
    return DualARConfig(
        slow=slow,
        fast=_transformer(audio, fallback=slow),
        vocab_size=text.integer("vocab_size"),
        codebook_count=audio.integer("num_codebooks"),
        codebook_size=audio.integer("vocab_size"),
        semantic_begin_id=top.integer("semantic_start_token_id"),
        semantic_end_id=top.integer("semantic_end_token_id"),
    )


def _transformer(section: "_Section", *, fallback: TransformerConfig | None) -> TransformerConfig:
    """Read one stack. Bases and epsilons that the fast stack does not name are those of the slow one.

    `attention_qk_norm` never falls back: the fast stack has none unless it says so itself.
    """
    for name in ("attention_qkv_bias", "attention_o_bias"):
        if section.flag(name, default=False):
            raise BadCheckpoint(f"{section.name}.{name} is true, expected false: no published checkpoint has biases")
    return TransformerConfig(
        layers=section.integer("n_layer"),
        heads=section.integer("n_head"),
        kv_heads=section.integer("n_local_heads"),
        head_dim=section.integer("head_dim"),
        dim=section.integer("dim"),
        intermediate_dim=section.integer("intermediate_size"),
        rope_base=section.number("rope_base", default=fallback.rope_base if fallback else 1_000_000.0),
        norm_eps=section.number("norm_eps", default=fallback.norm_eps if fallback else 1e-6),
        max_positions=section.integer("max_seq_len", default=_fast_positions(section) if fallback else None),
        has_qk_norm=section.flag("attention_qk_norm", default=False),
    )


def _fast_positions(section: "_Section") -> int:
    return section.integer("num_codebooks") + 1


class _Section:
    """One object of the file, read with the names of its keys in every complaint."""

    def __init__(self, raw: object, name: str) -> None:
        if not isinstance(raw, Mapping):
            raise BadCheckpoint(f"{name}: expected an object, found {type(raw).__name__}")
        self.raw: Mapping[str, object] = raw
        self.name = name

    def section(self, key: str) -> "_Section":
        return _Section(self.raw.get(key), f"{self.name}.{key}")

    def integer(self, key: str, default: int | None = None) -> int:
        value = self.raw.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
            raise BadCheckpoint(f"{self.name}.{key} is {value!r}, expected a positive integer")
        return value

    def number(self, key: str, default: float) -> float:
        value = self.raw.get(key, default)
        if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
            raise BadCheckpoint(f"{self.name}.{key} is {value!r}, expected a positive number")
        return float(value)

    def flag(self, key: str, *, default: bool) -> bool:
        value = self.raw.get(key, default)
        if not isinstance(value, bool):
            raise BadCheckpoint(f"{self.name}.{key} is {value!r}, expected true or false")
        return value
