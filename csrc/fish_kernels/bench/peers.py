"""The libraries we compare with, each behind the same call. A peer that is not installed is left out and named in the report."""

from collections.abc import Callable
from types import ModuleType

import torch
from torch import Tensor
from torch.nn import functional

from fish_engine.kernels.reference import quantize_weight
from fish_kernels.bench.operands import Activations, make_activations

Gemm = Callable[[Activations, Tensor, tuple[Tensor, Tensor], Tensor], None]
"""activations, bf16 weight, quantised weight, output"""


def _bf16(x: Activations, wide: Tensor, _quantized: tuple[Tensor, Tensor], out: Tensor) -> None:
    torch.mm(x.wide, wide.t(), out=out)


def _deep_gemm(module: ModuleType, *, prepared_scales: bool) -> Gemm:
    """With scales as [M, K/128] rows it launches a transposing kernel first; prepared, they are in the layout it wants."""

    def gemm(x: Activations, _wide: Tensor, quantized: tuple[Tensor, Tensor], out: Tensor) -> None:
        scales = x.scales_by_token if prepared_scales else x.scale_rows
        module.fp8_gemm_nt((x.values, scales), quantized, out)

    return gemm


def _scaled_mm() -> Gemm:
    from torch.nn.functional import ScalingType, scaled_mm  # noqa: PLC0415  absent before torch 2.10

    def gemm(x: Activations, _wide: Tensor, quantized: tuple[Tensor, Tensor], _out: Tensor) -> None:
        weight, weight_scale = quantized
        padded = -weight_scale.shape[1] % 4
        scale = functional.pad(weight_scale, (0, padded)) if padded else weight_scale
        missing = -x.values.shape[0] % 4  # cuBLASLt has no blockwise algorithm for other numbers of tokens
        values = functional.pad(x.values.view(torch.uint8), (0, 0, 0, missing)).view(torch.float8_e4m3fn)
        scaled_mm(
            values,
            weight.t(),
            x.scales.t(),
            ScalingType.BlockWise1x128,
            scale.t(),
            ScalingType.BlockWise128x128,
            output_dtype=torch.bfloat16,
        )

    return gemm


def _flashinfer(module: ModuleType) -> Gemm:
    def gemm(x: Activations, _wide: Tensor, quantized: tuple[Tensor, Tensor], _out: Tensor) -> None:
        weight, weight_scale = quantized
        module.gemm.fp8_blockscale_gemm_sm90(x.wide, weight, None, weight_scale)

    return gemm


def available_peers() -> tuple[dict[str, Gemm], dict[str, str]]:
    """Return the peers that can be imported, and why the others cannot."""
    peers: dict[str, Gemm] = {"bf16": _bf16}
    missing: dict[str, str] = {}
    try:
        peers["scaled_mm"] = _scaled_mm()
    except ImportError as error:
        missing["scaled_mm"] = str(error)
    try:
        import deep_gemm  # type: ignore[import-not-found]  # noqa: PLC0415  may not be installed

        deep_gemm.set_pdl(True)
        peers["deep_gemm"] = _deep_gemm(deep_gemm, prepared_scales=False)
        peers["deep_gemm, scales prepared"] = _deep_gemm(deep_gemm, prepared_scales=True)
    except (ImportError, AttributeError, OSError) as error:
        missing["deep_gemm"] = str(error)
    try:
        import flashinfer  # type: ignore[import-not-found]  # noqa: PLC0415  may not be installed

        peers["flashinfer"] = _flashinfer(flashinfer)
    except (ImportError, AttributeError, OSError) as error:
        missing["flashinfer"] = str(error)
    return peers, missing


def working_peers(device: torch.device) -> tuple[dict[str, Gemm], dict[str, str]]:
    """Return the peers that multiply a small matrix here, and what stands in the way of the others.

    Some compile at their first call, which is then not timed.
    """
    peers, missing = available_peers()
    x = make_activations(8, 512, device)
    wide = torch.randn(1024, 512, device=device, dtype=torch.bfloat16)
    quantized = quantize_weight(wide)
    out = torch.empty(8, 1024, device=device, dtype=torch.bfloat16)
    for name, gemm in list(peers.items()):
        try:
            gemm(x, wide, quantized, out)
            torch.cuda.synchronize(device)
        except Exception as error:
            del peers[name]
            missing[name] = f"{type(error).__name__}: {error}"
    return peers, missing
