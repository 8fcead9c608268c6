"""The codec's windowed causal transformer: each position sees itself and `window - 1` earlier ones, which are carried."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from fish_engine.codec.carried import Carried, Span, StateLayout
from fish_engine.codec.config import TransformerConfig
from fish_engine.codec.layers import LayerScale, Linear, RMSNorm


class WindowedTransformer(nn.Module):
    """Layers and a final norm. `positions_per_frame` is how many positions of this transformer one codec frame has."""

    def __init__(self, layout: StateLayout, config: TransformerConfig, positions_per_frame: int) -> None:
        super().__init__()
        self.config = config
        self.positions_per_frame = positions_per_frame
        self.layers = nn.ModuleList(TransformerLayer(layout, config) for _ in range(config.layers))
        self.norm = RMSNorm(config.dim, config.norm_eps)

    def forward(self, x: Tensor, carried: Carried) -> Tensor:
        starts = carried.frame_indices * self.positions_per_frame  # [lanes]
        rotation, mask = self._rotation(starts), self._mask(starts)
        rows = x.transpose(1, 2)  # [lanes, positions, dim]
        for layer in self.layers:
            rows = layer(rows, carried, rotation, mask)
        normed: Tensor = self.norm(rows)
        return normed.transpose(1, 2)

    def _rotation(self, starts: Tensor) -> tuple[Tensor, Tensor]:
        """Return cos and sin [lanes, positions, 1, head_dim / 2], rounded to bf16 and back, as in training."""
        config = self.config
        exponents = torch.arange(0, config.head_dim, 2, device=starts.device).float() / config.head_dim
        positions = starts[:, None] + torch.arange(self.positions_per_frame, device=starts.device)
        angles = positions.float()[..., None, None] * (1.0 / config.rope_base**exponents)
        return angles.cos().bfloat16().float(), angles.sin().bfloat16().float()

    def _mask(self, starts: Tensor) -> Tensor:
        """Return what is added to the scores, [lanes, 1, queries, keys]: 0 where a query may look.

        A lane's keys are the `window - 1` positions before its first query, then the queries' own.
        """
        queries, past = self.positions_per_frame, self.config.window - 1
        query = torch.arange(queries, device=starts.device)[:, None]
        key = torch.arange(past + queries, device=starts.device)
        in_window = (key >= query) & (key <= query + past)  # [queries, keys]
        exists = starts[:, None] - past + key >= 0  # [lanes, keys]
        allowed = in_window & exists[:, None]
        return torch.zeros(allowed.shape, device=starts.device).masked_fill_(~allowed, -torch.inf)[:, None]


class TransformerLayer(nn.Module):
    """Attention and a SwiGLU, each normed before, scaled after and added to its input."""

    def __init__(self, layout: StateLayout, config: TransformerConfig) -> None:
        super().__init__()
        self.attention = Attention(layout, config)
        self.feed_forward = FeedForward(config.dim, config.intermediate)
        self.attention_norm = RMSNorm(config.dim, config.norm_eps)
        self.ffn_norm = RMSNorm(config.dim, config.norm_eps)
        self.attention_layer_scale = LayerScale(config.dim)
        self.ffn_layer_scale = LayerScale(config.dim)

    def forward(self, x: Tensor, carried: Carried, rotation: tuple[Tensor, Tensor], mask: Tensor) -> Tensor:
        attended = self.attention(self.attention_norm(x), carried, rotation, mask)
        x = x + self.attention_layer_scale(attended)
        fed: Tensor = self.ffn_layer_scale(self.feed_forward(self.ffn_norm(x)))
        return x + fed


class FeedForward(nn.Module):
    """w2(silu(w1 x) · w3 x)."""

    def __init__(self, dim: int, intermediate: int) -> None:
        super().__init__()
        self.w1 = Linear(dim, intermediate)
        self.w3 = Linear(dim, intermediate)
        self.w2 = Linear(intermediate, dim)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.w2(functional.silu(self.w1(x)) * self.w3(x))
        return out


class Attention(nn.Module):
    """Multi-head attention over the carried window; keys are carried after rotation, positions being absolute."""

    def __init__(self, layout: StateLayout, config: TransformerConfig) -> None:
        super().__init__()
        self.heads, self.head_dim = config.heads, config.head_dim
        self.wqkv = Linear(config.dim, 3 * config.dim)
        self.wo = Linear(config.dim, config.dim)
        self.past_keys = layout.reserve(config.dim, config.window - 1)
        self.past_values = layout.reserve(config.dim, config.window - 1)

    def forward(self, x: Tensor, carried: Carried, rotation: tuple[Tensor, Tensor], mask: Tensor) -> Tensor:
        lanes, positions, _ = x.shape
        qkv = self.wqkv(x).view(lanes, positions, 3, self.heads, self.head_dim)
        query, key, value = qkv.unbind(2)  # [lanes, positions, heads, head_dim] each
        queries = rotate(query, *rotation).transpose(1, 2).reshape(-1, positions, self.head_dim)
        keys = self._seen(carried, self.past_keys, rotate(key, *rotation))
        values = self._seen(carried, self.past_values, value)
        scores = torch.bmm(queries, keys).mul_(self.head_dim**-0.5)
        weights = (scores.view(lanes, self.heads, positions, -1) + mask).softmax(-1).flatten(0, 1)
        attended = torch.bmm(weights, values.transpose(1, 2))  # [lanes * heads, positions, head_dim]
        merged = attended.view(lanes, self.heads, positions, -1).transpose(1, 2).flatten(2)
        out: Tensor = self.wo(merged)
        return out

    def _seen(self, carried: Carried, past: Span, x: Tensor) -> Tensor:
        """Return what each lane may look at: its past, then itself.

        Shapes: x [lanes, positions, heads, head_dim] → [lanes * heads, head_dim, window - 1 + positions].
        """
        joined = carried.join(past, x.flatten(2).transpose(1, 2))  # [streams, dim, past + frames * positions]
        seen = joined.unfold(2, past.shape[1] + x.shape[1], x.shape[1])  # [streams, dim, frames, seen]
        return seen.transpose(1, 2).reshape(-1, self.head_dim, seen.shape[3])


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate adjacent pairs: x [..., heads, head_dim], cos and sin [..., 1, head_dim / 2]."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, odd * cos + even * sin], dim=-1).flatten(-2)
