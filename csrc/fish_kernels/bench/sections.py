"""The tables: single GEMMs, the small kernels, the MLP, and the four GEMMs of a layer as a chain."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

import fish_kernels
from fish_engine import kernels
from fish_engine.kernels import reference
from fish_kernels.bench.operands import Activations, Weights, make_activations
from fish_kernels.bench.peers import Gemm
from fish_kernels.bench.shapes import CHAIN_BARS_US, DOWN, GATE_UP, LAYER, MLP_BARS_US, OUT, QKV
from fish_kernels.bench.timing import capture, interleaved_medians_us

GRAPH_US = 500  # of work in one replay, so that its own overhead is lost in it
COPY_BYTES_PER_US = 4.3e6
CHAIN_LAYERS = 12
DEEP_GEMM = "deep_gemm, scales prepared"  # the faster of its two arms stands in chains and MLPs


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure."""

    section: str
    shape: str
    tokens: int
    arm: str
    us: float
    gigabytes_per_s: float | None = None
    relative_error: float | None = None
    bar_us: float | None = None

    @property
    def meets_bar(self) -> bool | None:
        """None where there is no bar."""
        return None if self.bar_us is None else self.us <= self.bar_us


Arm = Callable[[int], None]
"""Runs the op on the n-th copy of the weights."""


def _launch_all(arm: Arm, launches: int) -> None:
    for i in range(launches):
        arm(i)


def _graphs(arms: Mapping[str, Arm], launches: int) -> dict[str, torch.cuda.CUDAGraph]:
    graphs = {}
    for name, arm in arms.items():
        fish_kernels.set_programmatic_launch(enabled=not name.endswith("no overlap"))
        graphs[name] = capture(partial(_launch_all, arm, launches))
    fish_kernels.set_programmatic_launch(enabled=True)
    return graphs


def _relative_error(found: Tensor, wanted: Tensor) -> float:
    return float((found.double() - wanted).norm() / wanted.norm())


def _peer_arm(gemm: Gemm, x: Activations, weights: Weights, out: Tensor, i: int) -> None:
    copy = i % len(weights.wide)
    gemm(x, weights.wide[copy], weights.quantized[copy], out)


def gemms(weights: Weights, tokens: int, peers: Mapping[str, Gemm], replays: int) -> Iterator[Row]:
    """Time one weight shape: ours with and without overlap, W8A16, and every peer."""
    shape = weights.shape
    x = make_activations(tokens, shape.columns, weights.wide[0].device)
    copies = len(weights.wide)
    outs = {
        name: torch.full((tokens, shape.rows), float("nan"), dtype=torch.bfloat16, device=x.wide.device)
        for name in ("fp8", "w8a16", *peers)
    }

    def fp8(i: int) -> None:
        torch.ops.fish.fp8_gemm_blockscaled(x.values, x.scales, *weights.quantized[i % copies], None, outs["fp8"])

    def w8a16(i: int) -> None:
        torch.ops.fish.w8a16_gemm_blockscaled(x.wide, *weights.quantized[i % copies], None, outs["w8a16"])

    arms: dict[str, Arm] = {"fp8": fp8, "fp8, no overlap": fp8, "w8a16": w8a16}
    for name, peer in peers.items():
        arms[name] = partial(_peer_arm, peer, x, weights, outs[name])
    fp8(0)
    w8a16(0)
    wide_weight = reference.dequantize_weight(*weights.quantized[0]).double().t()
    errors = {
        "fp8": _relative_error(
            outs["fp8"], reference.dequantize_activations(x.values, x.scales).double() @ wide_weight
        ),
        "w8a16": _relative_error(outs["w8a16"], x.wide.double() @ wide_weight),
    }
    launches = max(copies, int(GRAPH_US / (shape.weight_bytes / COPY_BYTES_PER_US)) // copies * copies)
    for arm, total_us in interleaved_medians_us(_graphs(arms, launches), replays).items():
        us = total_us / launches
        yield Row(
            section="gemm",
            shape=shape.name,
            tokens=tokens,
            arm=arm,
            us=us,
            gigabytes_per_s=shape.weight_bytes * (2 if arm == "bf16" else 1) / us / 1e3,
            relative_error=errors.get(arm),
            bar_us=shape.bars_us.get(tokens) if arm == "fp8" else None,
        )


def _chain_arm(
    by_name: Mapping[str, Weights], inputs: Mapping[str, Activations], outs: Mapping[str, Tensor], gemm: Gemm
) -> Arm:
    def layer(i: int) -> None:
        for shape in LAYER:
            weights = by_name[shape.name]
            copy = i % len(weights.wide)
            gemm(inputs[shape.name], weights.wide[copy], weights.quantized[copy], outs[shape.name])

    return layer


def _fp8_gemm(x: Activations, _wide: Tensor, quantized: tuple[Tensor, Tensor], out: Tensor) -> None:
    torch.ops.fish.fp8_gemm_blockscaled(x.values, x.scales, *quantized, None, out)


def chain(by_name: Mapping[str, Weights], tokens: int, peers: Mapping[str, Gemm], replays: int) -> Iterator[Row]:
    """Time qkv, o, gate_up, down of twelve layers in one graph; a figure is one layer."""
    device = by_name[QKV.name].wide[0].device
    inputs = {shape.name: make_activations(tokens, shape.columns, device) for shape in LAYER}
    outs = {shape.name: torch.empty(tokens, shape.rows, dtype=torch.bfloat16, device=device) for shape in LAYER}
    ours = _chain_arm(by_name, inputs, outs, _fp8_gemm)
    arms = {"fp8": ours, "fp8, no overlap": ours}
    arms |= {name: _chain_arm(by_name, inputs, outs, gemm) for name, gemm in peers.items() if name == DEEP_GEMM}
    layer_bytes = sum(shape.weight_bytes for shape in LAYER)
    for arm, total_us in interleaved_medians_us(_graphs(arms, CHAIN_LAYERS), replays).items():
        us = total_us / CHAIN_LAYERS
        bar_us = CHAIN_BARS_US.get(tokens) if arm == "fp8" else None
        yield Row(
            section="chain",
            shape="layer",
            tokens=tokens,
            arm=arm,
            us=us,
            gigabytes_per_s=layer_bytes / us / 1e3,
            bar_us=bar_us,
        )


def _quantised(wide: Tensor, quantized: tuple[Tensor, Tensor]) -> Activations:
    values, scales = quantized
    return Activations(wide=wide, values=values, scales=scales, scale_rows=scales[:, : values.shape[0]].t())


def mlp(by_name: Mapping[str, Weights], tokens: int, peers: Mapping[str, Gemm], replays: int) -> Iterator[Row]:
    """Time the MLP block, bf16 in and out. DeepGEMM runs between our own quantising kernels, the fastest it can have."""
    gate_up, down = by_name[GATE_UP.name], by_name[DOWN.name]
    x = make_activations(tokens, GATE_UP.columns, gate_up.wide[0].device).wide
    out = torch.empty(tokens, DOWN.rows, dtype=torch.bfloat16, device=x.device)

    def fused(i: int) -> None:
        values, scales = kernels.quantize_fp8(x)
        hidden = kernels.gate_up_swiglu_quantize(
            values, scales, gate_up.interleaved[i % len(gate_up.wide)], gate_up.quantized[i % len(gate_up.wide)][1]
        )
        torch.ops.fish.fp8_gemm_blockscaled(*hidden, *down.quantized[i % len(down.wide)], None, out)

    def separate(gemm: Gemm) -> Arm:
        wide = torch.empty(tokens, GATE_UP.rows, dtype=torch.bfloat16, device=x.device)

        def run(i: int) -> None:
            first = _quantised(x, kernels.quantize_fp8(x))
            gemm(first, gate_up.wide[i % len(gate_up.wide)], gate_up.quantized[i % len(gate_up.wide)], wide)
            hidden = kernels.silu_mul_quantize(wide)
            second = _quantised(out, hidden)
            gemm(second, down.wide[i % len(down.wide)], down.quantized[i % len(down.wide)], out)

        return run

    arms: dict[str, Arm] = {"fp8": fused, "fp8, no overlap": fused, "fp8, not fused": separate(_fp8_gemm)}
    arms |= {name: separate(gemm) for name, gemm in peers.items() if name == DEEP_GEMM}
    for arm, total_us in interleaved_medians_us(_graphs(arms, CHAIN_LAYERS), replays).items():
        bar_us = MLP_BARS_US.get(tokens) if arm == "fp8" else None
        yield Row(section="mlp", shape="mlp", tokens=tokens, arm=arm, us=total_us / CHAIN_LAYERS, bar_us=bar_us)


def small_kernels(tokens: int, replays: int, device: torch.device) -> Iterator[Row]:
    """Time the kernels between the GEMMs, one after the other in a graph."""
    x = torch.randn(tokens, OUT.rows, device=device, dtype=torch.bfloat16)
    gate_up = torch.randn(tokens, GATE_UP.rows, device=device, dtype=torch.bfloat16)
    weight = torch.ones(OUT.rows, device=device, dtype=torch.bfloat16)
    arms: dict[str, Arm] = {
        "quantize_fp8": lambda _: kernels.quantize_fp8(x) and None,
        "rms_norm_quantize": lambda _: kernels.rms_norm_quantize(x, weight, 1e-6) and None,
        "silu_mul_quantize": lambda _: kernels.silu_mul_quantize(gate_up) and None,
    }
    launches = 100
    for arm, total_us in interleaved_medians_us(_graphs(arms, launches), replays).items():
        yield Row(section="small", shape="row", tokens=tokens, arm=arm, us=total_us / launches)


def weights_by_name(weights: Sequence[Weights]) -> dict[str, Weights]:
    """Return the weights under the names of their shapes."""
    return {entry.shape.name: entry for entry in weights}
