"""Models of true sizes with weights that mean nothing: for measuring speed where no checkpoint is at hand."""

from collections.abc import Mapping
from typing import Final

import torch
from torch import Tensor

from fish_engine.codec.config import CodecConfig
from fish_engine.codec.dac import Codec
from fish_engine.codec.layers import Layer, Shape
from fish_engine.model.config import DualARConfig, TransformerConfig
from fish_engine.model.dual_ar import DualAR

_SPREAD: Final = 0.02
_SLOW: Final = TransformerConfig(
    layers=36,
    heads=32,
    kv_heads=8,
    head_dim=128,
    dim=2560,
    intermediate_dim=9728,
    rope_base=1_000_000.0,
    norm_eps=1e-6,
    max_positions=32_768,
    has_qk_norm=True,
)
_FAST: Final = TransformerConfig(
    layers=4,
    heads=32,
    kv_heads=8,
    head_dim=128,
    dim=2560,
    intermediate_dim=9728,
    rope_base=1_000_000.0,
    norm_eps=1e-6,
    max_positions=11,
    has_qk_norm=False,
)
S2: Final = DualARConfig(
    slow=_SLOW,
    fast=_FAST,
    vocab_size=155_776,
    codebook_count=10,
    codebook_size=4096,
    semantic_begin_id=151_678,
    semantic_end_id=155_773,
)
"""Sizes of the published S2 Pro checkpoint: 4.56 billion parameters."""
S2_IM_END_ID: Final = 151_645


def random_model(config: DualARConfig, *, im_end_id: int, device: torch.device, dtype: torch.dtype) -> DualAR:
    """Return a model whose weights were drawn on `device`; norms are ones, and the end mark's row is zero.

    So its logit is zero, which is never among the likely ones: such a model speaks until it is stopped.
    """
    with torch.device("meta"):
        model = DualAR(config, im_end_id=im_end_id)
    state = {
        name: torch.ones(parameter.shape, device=device, dtype=dtype)
        if name.endswith("norm.weight")
        else torch.randn(parameter.shape, device=device, dtype=dtype).mul_(_SPREAD)
        for name, parameter in model.named_parameters()
    }
    state["slow.embeddings.weight"][im_end_id] = 0
    model.load_state_dict(state, assign=True)
    return model.to(device).eval().requires_grad_(requires_grad=False)


def random_codec(config: CodecConfig, *, device: torch.device) -> Codec:
    """Return a codec in float32 whose weights were drawn on `device`; what scales, gates or bends is one."""
    with torch.device("meta"):
        codec = Codec(config)
    for module in codec.modules():
        if isinstance(module, Layer):
            module.take(_random_tensors(module.published_shapes(), device))
    return codec.eval()


def _random_tensors(shapes: Mapping[str, Shape], device: torch.device) -> dict[str, Tensor]:
    return {
        name: torch.randn(shape, device=device).mul_(_SPREAD)
        if len(shape) > 1 and max(shape[1:]) > 1
        else torch.ones(shape, device=device)
        for name, shape in shapes.items()
    }
