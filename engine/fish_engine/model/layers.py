"""The parts that both stacks of a DualAR model are made of.

A block does not know how keys and values are kept: whoever calls it passes an `AttentionMemory` that stores the new ones
and mixes the old ones (`attention.py`).
"""

from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fish_engine.model.config import TransformerConfig


class AttentionMemory(Protocol):
    """Where one forward pass finds the keys and values of earlier positions."""

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Store `k` and `v` of this layer, and return the values mixed for `q`.

        Shapes: q [T, heads, head_dim]; k, v [T, kv_heads, head_dim]; result [T, heads, head_dim].
        """
        ...


def rope_table(config: TransformerConfig) -> Tensor:
    """Return the turn of each pair at every position, [max_positions, head_dim / 2] complex, of length one.

    Cosines and sines are rounded to bf16 and back, as in training; with exact ones long utterances turn to noise.
    """
    exponents = torch.arange(0, config.head_dim, 2, dtype=torch.float32, device="cpu") / config.head_dim
    positions = torch.arange(config.max_positions, dtype=torch.float32, device="cpu")
    angles = torch.outer(positions, 1.0 / config.rope_base**exponents)  # [P, D/2]
    return torch.complex(angles.cos().bfloat16().float(), angles.sin().bfloat16().float())


def rotate(x: Tensor, turns: Tensor) -> Tensor:
    """Rotate queries or keys in float32; pairs are neighbours (0, 1), (2, 3), …, not halves.

    Shapes: x [T, heads, head_dim], turns [T, 1, head_dim / 2] complex.
    """
    pairs = torch.view_as_complex(torch.unflatten(x.float(), -1, (-1, 2)))  # [T, H, D/2]
    return torch.view_as_real(pairs * turns).flatten(-2).to(x.dtype)


class RMSNorm(nn.Module):
    """Normalise in float32, return to the model's dtype, then scale."""

    def __init__(self, dim: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(dim))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """Return `x` with the root mean square of its last dimension brought to one, times the weight."""
        wide = x.float()
        # Written out: the library's function makes twice as many passes on a CPU.
        scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
        return (wide * scale).to(x.dtype) * self.weight


class Attention(nn.Module):
    """Grouped-query attention with one fused projection."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.wqkv = nn.Linear(config.dim, config.qkv_rows, bias=False)
        self.wo = nn.Linear(config.heads * config.head_dim, config.dim, bias=False)
        if config.has_qk_norm:
            self.q_norm = RMSNorm(config.head_dim, config.norm_eps)
            self.k_norm = RMSNorm(config.head_dim, config.norm_eps)

    def forward(self, x: Tensor, turns: Tensor, layer: int, memory: AttentionMemory) -> Tensor:
        """Return [T, dim] for x [T, dim]."""
        heads, kv_heads = self.config.heads, self.config.kv_heads
        projected = torch.unflatten(self.wqkv(x), -1, (-1, self.config.head_dim))  # [T, H + 2 KVH, D]
        queries_and_keys, v = torch.split(projected, [heads + kv_heads, kv_heads], dim=1)
        if self.config.has_qk_norm:
            q, k = torch.split(queries_and_keys, [heads, kv_heads], dim=1)
            queries_and_keys = torch.cat((self.q_norm(q), self.k_norm(k)), dim=1)
        q, k = torch.split(rotate(queries_and_keys, turns), [heads, kv_heads], dim=1)
        out: Tensor = self.wo(memory.attend(layer, q, k, v).flatten(1))
        return out


class FeedForward(nn.Module):
    """SwiGLU: w1 is the gate, w3 goes up, w2 comes down."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.w1 = nn.Linear(config.dim, config.intermediate_dim, bias=False)
        self.w2 = nn.Linear(config.intermediate_dim, config.dim, bias=False)
        self.w3 = nn.Linear(config.dim, config.intermediate_dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return [T, dim] for x [T, dim]."""
        down: Tensor = self.w2(F.silu(self.w1(x)) * self.w3(x))
        return down


class Block(nn.Module):
    """One pre-norm transformer block."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.attention = Attention(config)
        self.feed_forward = FeedForward(config)
        self.attention_norm = RMSNorm(config.dim, config.norm_eps)
        self.ffn_norm = RMSNorm(config.dim, config.norm_eps)

    def forward(self, x: Tensor, turns: Tensor, layer: int, memory: AttentionMemory) -> Tensor:
        """Return [T, dim] for x [T, dim]."""
        mixed: Tensor = x + self.attention(self.attention_norm(x), turns, layer, memory)
        refined: Tensor = mixed + self.feed_forward(self.ffn_norm(mixed))
        return refined


class Stack(nn.Module):
    """Blocks in a row and the norm after them."""

    rope: Tensor

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = RMSNorm(config.dim, config.norm_eps)
        # Made on the CPU even while the weights are built on no device at all: it is in no checkpoint.
        self.register_buffer("rope", rope_table(config), persistent=False)

    def run(self, x: Tensor, positions: Tensor, memory: AttentionMemory) -> Tensor:
        """Return the normalised output [T, dim] for x [T, dim] at positions [T]."""
        turns = self.rope[positions].unsqueeze(1)  # [T, 1, D/2]
        for index, block in enumerate(self.layers):
            x = block(x, turns, index, memory)
        normalised: Tensor = self.norm(x)
        return normalised
