"""Random weights and activations, in bf16 and quantised, as many copies as it takes to be cold."""

from dataclasses import dataclass

import torch
from torch import Tensor

from fish_engine import kernels
from fish_engine.kernels import reference
from fish_kernels.bench.shapes import COLD_BYTES, Shape

WEIGHT_SCALE = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Distinct copies of one layer's weight."""

    shape: Shape
    wide: list[Tensor]  # bf16 [N, K]
    quantized: list[tuple[Tensor, Tensor]]  # e4m3 [N, K], fp32 [N/128, K/128]
    interleaved: list[Tensor]  # the e4m3 values with gate and up rows interleaved; of gate_up only


@dataclass(frozen=True, slots=True, kw_only=True)
class Activations:
    """The same activations in every form that an arm takes."""

    wide: Tensor  # bf16 [M, K]
    values: Tensor  # e4m3 [M, K]
    scales: Tensor  # fp32 [K/128, M rounded up to 4]
    scale_rows: Tensor  # fp32 [M, K/128]

    @property
    def scales_by_token(self) -> Tensor:
        """The scales as [M, K/128], token stride 1: a view."""
        return self.scales[:, : self.wide.shape[0]].t()


def make_weights(shape: Shape, device: torch.device) -> Weights:
    """Return at least three copies, of COLD_BYTES together."""
    copies = max(3, COLD_BYTES // shape.weight_bytes + 1)
    wide = [
        torch.randn(shape.rows, shape.columns, device=device, dtype=torch.bfloat16) * WEIGHT_SCALE
        for _ in range(copies)
    ]
    quantized = [reference.quantize_weight(weight) for weight in wide]
    interleaved = [kernels.interleave_gate_up(values) for values, _ in quantized] if shape.name == "gate_up" else []
    return Weights(shape=shape, wide=wide, quantized=quantized, interleaved=interleaved)


def make_activations(tokens: int, columns: int, device: torch.device) -> Activations:
    """Return Gaussian activations."""
    wide = torch.randn(tokens, columns, device=device, dtype=torch.bfloat16)
    values, scales = reference.quantize_fp8(wide)
    return Activations(wide=wide, values=values, scales=scales, scale_rows=scales[:, :tokens].t().contiguous())
