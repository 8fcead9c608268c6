"""What a stream's row remembers, with channels side by side, and the codec's transformer over it.

The keys and values of a stream lie in one row, so frames of one chunk share them; `codec/transformer.py` copies them for each.
"""

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor

from fish_engine.codec.carried import Carried, Span
from fish_engine.codec.transformer import TransformerLayer, WindowedTransformer, rotate


def past_of(carried: Carried, span: Span) -> Tensor:
    """Return what is remembered, [S, past, channels]."""
    channels, past = span.shape
    return carried.before[:, span.offset : span.offset + span.size].view(-1, past, channels)


def remember(joined: Tensor, span: Span, carried: Carried) -> None:
    """Keep the end of joined [S, past + T, channels] for the next call."""
    channels, past = span.shape
    kept = carried.after[:, span.offset : span.offset + span.size].view(-1, past, channels)
    kept.copy_(joined[:, joined.shape[1] - past :])


def behind_past(x: Tensor, span: Span, carried: Carried) -> Tensor:
    """Return x [S, T, channels] behind what is remembered, and remember its end."""
    joined = torch.cat((past_of(carried, span).to(x.dtype), x), dim=1)
    remember(joined, span, carried)
    return joined


def attended(transformer: WindowedTransformer, x: Tensor, carried: Carried) -> Tensor:
    """Return the output [S, F, dim] of a transformer with one position a frame, for x [S, F, dim]."""
    config, frames = transformer.config, x.shape[1]
    positions = carried.frame_indices.view(-1, frames)  # [S, F]
    exponents = torch.arange(0, config.head_dim, 2, device=x.device).float() / config.head_dim
    angles = positions[..., None, None].float() * (1.0 / config.rope_base**exponents)  # [S, F, 1, head_dim / 2]
    rotation = angles.cos().bfloat16().float(), angles.sin().bfloat16().float()
    past = config.window - 1
    key = torch.arange(past + frames, device=x.device)
    query = torch.arange(frames, device=x.device)[:, None]
    in_window = (key >= query) & (key <= query + past)  # [F, past + F]
    exists = carried.first_frames[:, None] - past + key >= 0  # [S, past + F]
    mask = (in_window & exists[:, None])[:, None]  # [S, 1, F, past + F]
    for layer in transformer.layers:
        x = _attention_layer(cast(TransformerLayer, layer), x, rotation, mask, carried)
    normed: Tensor = transformer.norm(x)
    return normed


def _attention_layer(
    layer: TransformerLayer, x: Tensor, rotation: tuple[Tensor, Tensor], mask: Tensor, carried: Carried
) -> Tensor:
    attention = layer.attention
    qkv = attention.wqkv(layer.attention_norm(x)).view(*x.shape[:2], 3, attention.heads, attention.head_dim)
    query, key, value = qkv.unbind(2)  # [S, F, heads, head_dim] each
    keys, values = (
        torch.unflatten(behind_past(part.flatten(2), span, carried), 2, (attention.heads, -1))
        for span, part in ((attention.past_keys, rotate(key, *rotation)), (attention.past_values, value))
    )  # [S, past + F, heads, head_dim] each
    queries = rotate(query, *rotation).transpose(1, 2)  # [S, heads, F, head_dim]
    mixed = F.scaled_dot_product_attention(queries, keys.transpose(1, 2), values.transpose(1, 2), attn_mask=mask)
    x = x + layer.attention_layer_scale(attention.wo(mixed.transpose(1, 2).flatten(2)))
    fed: Tensor = x + layer.ffn_layer_scale(layer.feed_forward(layer.ffn_norm(x)))
    return fed
