"""The codec's windowed causal transformer: each position sees itself and `window - 1` earlier ones, which are carried."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from fish_engine.codec.carried import Carried, StateLayout
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

    def forward(self, x: Tensor, carried: Carried, frames: int) -> Tensor:
        first = carried.first_frames * self.positions_per_frame  # [streams]
        rotation = self._rotation(first, x.shape[1])
        mask = self._mask(first, frames)
        for layer in self.layers:
            x = layer(x, carried, frames, rotation, mask)
        normed: Tensor = self.norm(x)
        return normed

    def _rotation(self, first: Tensor, length: int) -> tuple[Tensor, Tensor]:
        """Return cos and sin [streams, length, 1, head_dim / 2], rounded to bf16 and back, as in training."""
        config = self.config
        exponents = torch.arange(0, config.head_dim, 2, device=first.device).float() / config.head_dim
        positions = first[:, None] + torch.arange(length, device=first.device)  # [S, length]
        angles = positions.float()[..., None] * (1.0 / config.rope_base**exponents)
        return angles.cos().bfloat16().float()[:, :, None], angles.sin().bfloat16().float()[:, :, None]

    def _mask(self, first: Tensor, frames: int) -> Tensor:
        """Return what is added to the scores, [streams * frames, 1, queries, keys]: 0 where a query may look.

        A lane's keys are the `window - 1` positions before its first query, then the queries' own.
        """
        queries, before = self.positions_per_frame, self.config.window - 1
        query = torch.arange(queries, device=first.device)[:, None]
        key = torch.arange(before + queries, device=first.device)
        in_window = (key >= query) & (key <= query + before)  # [queries, keys]
        lane_start = first[:, None] + torch.arange(frames, device=first.device) * queries  # [S, frames]
        exists = lane_start.reshape(-1, 1) - before + key >= 0  # [lanes, keys]
        allowed = in_window & exists[:, None]
        return torch.zeros(allowed.shape, device=first.device).masked_fill_(~allowed, -torch.inf)[:, None]


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

    def forward(
        self, x: Tensor, carried: Carried, frames: int, rotation: tuple[Tensor, Tensor], mask: Tensor
    ) -> Tensor:
        attended = self.attention(self.attention_norm(x), carried, frames, rotation, mask)
        x = x + self.attention_layer_scale(attended)
        fed: Tensor = self.ffn_layer_scale(self.feed_forward(self.ffn_norm(x), frames))
        return x + fed


class FeedForward(nn.Module):
    """w2(silu(w1 x) · w3 x)."""

    def __init__(self, dim: int, intermediate: int) -> None:
        super().__init__()
        self.w1 = Linear(dim, intermediate)
        self.w3 = Linear(dim, intermediate)
        self.w2 = Linear(intermediate, dim)

    def forward(self, x: Tensor, frames: int) -> Tensor:
        out: Tensor = self.w2(functional.silu(self.w1(x, frames)) * self.w3(x, frames), frames)
        return out


class Attention(nn.Module):
    """Multi-head attention over the carried window; keys are carried after rotation, positions being absolute."""

    def __init__(self, layout: StateLayout, config: TransformerConfig) -> None:
        super().__init__()
        self.heads, self.head_dim = config.heads, config.head_dim
        self.wqkv = Linear(config.dim, 3 * config.dim)
        self.wo = Linear(config.dim, config.dim)
        self.past_keys = layout.reserve(config.window - 1, config.heads, config.head_dim)
        self.past_values = layout.reserve(config.window - 1, config.heads, config.head_dim)

    def forward(
        self, x: Tensor, carried: Carried, frames: int, rotation: tuple[Tensor, Tensor], mask: Tensor
    ) -> Tensor:
        streams, length, _ = x.shape
        qkv = self.wqkv(x, frames).view(streams, length, 3, self.heads, self.head_dim)
        query, key, value = qkv.unbind(2)  # [S, length, heads, head_dim] each
        queries = self._lanes(rotate(query, *rotation), frames, length // frames)
        keys = self._lanes(carried.prepend(self.past_keys, rotate(key, *rotation)), frames, length // frames)
        values = self._lanes(carried.prepend(self.past_values, value), frames, length // frames)
        scores = torch.bmm(queries, keys.transpose(1, 2)).mul_(self.head_dim**-0.5)
        lanes = streams * frames
        weights = (scores.view(lanes, self.heads, *scores.shape[1:]) + mask).softmax(-1).view(scores.shape)
        attended = torch.bmm(weights, values)  # [lanes * heads, queries, head_dim]
        merged = attended.view(lanes, self.heads, -1, self.head_dim).transpose(1, 2)
        out: Tensor = self.wo(merged.reshape(streams, length, -1), frames)
        return out

    def _lanes(self, x: Tensor, frames: int, step: int) -> Tensor:
        """Cut [S, length, heads, head_dim] into overlapping lanes that start `step` apart.

        Returns [S * frames * heads, positions, head_dim]; all positions but the last `step` of a lane are its past.
        """
        positions = x.shape[1] - (frames - 1) * step
        lanes = x.unfold(1, positions, step)  # [S, frames, heads, head_dim, positions]
        return lanes.permute(0, 1, 2, 4, 3).reshape(-1, positions, self.head_dim)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate adjacent pairs: x [..., heads, head_dim], cos and sin [..., 1, head_dim / 2]."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, odd * cos + even * sin], dim=-1).flatten(-2)
