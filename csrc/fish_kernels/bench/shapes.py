"""What is measured: the linear layers of a Qwen3-4B layer, and the bars they have to meet."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A weight [rows, columns]; `bars_us` by number of tokens, the milestone that must hold first."""

    name: str
    rows: int
    columns: int
    bars_us: dict[int, float]

    @property
    def weight_bytes(self) -> int:
        """Size in FP8."""
        return self.rows * self.columns


QKV = Shape(name="qkv", rows=6144, columns=2560, bars_us={1: 5.8, 8: 5.8, 16: 5.8, 32: 6.3, 64: 7.0})
OUT = Shape(name="o", rows=2560, columns=4096, bars_us={1: 4.6, 8: 4.6, 16: 4.6, 32: 5.3, 64: 6.4})
GATE_UP = Shape(name="gate_up", rows=19456, columns=2560, bars_us={1: 13.8, 8: 13.8, 16: 13.8, 32: 14.5, 64: 16.0})
DOWN = Shape(name="down", rows=2560, columns=9728, bars_us={1: 8.8, 8: 8.8, 16: 8.8, 32: 10.2, 64: 12.0})
LAYER = (QKV, OUT, GATE_UP, DOWN)

MLP_BARS_US = {1: 25.0, 8: 25.0, 16: 27.0, 32: 31.0, 64: 35.0}
CHAIN_BARS_US = {1: 33.0, 8: 33.0}
TOKENS = (1, 8, 16, 32, 64, 128)
COLD_BYTES = 130_000_000
"""Distinct weights in one graph: more than twice the 60 MB of L2, so that none is found there."""
