"""What GPU tests share: they are skipped, and say so, where there is no GPU or the compiled library is not installed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from fish_engine.kernels import reference


@pytest.fixture(scope="session")
def device() -> torch.device:
    if not torch.cuda.is_available():
        pytest.skip("needs an NVIDIA GPU")
    pytest.importorskip("fish_kernels", reason="the compiled library (csrc/) is not installed")
    return torch.device("cuda", 0)


@pytest.fixture
def programmatic_launch(device: torch.device) -> Iterator[Callable[[bool], None]]:
    """Return a switch for overlapping launches, put back to on afterwards."""
    library = pytest.importorskip("fish_kernels")
    yield lambda enabled: library.set_programmatic_launch(enabled=enabled)
    library.set_programmatic_launch(enabled=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A GEMM's operands, and the fp64 product of what they dequantise to."""

    wide: Tensor  # bf16 [M, K]
    x: Tensor  # e4m3 [M, K]
    x_scale: Tensor
    weight: Tensor  # e4m3 [N, K]
    weight_scale: Tensor
    exact: Tensor  # fp64 [M, N], of x
    exact_wide: Tensor  # fp64 [M, N], of the bf16 activations

    def head(self, tokens: int) -> "Product":
        """The first tokens alone."""
        x_scale = torch.zeros(self.x_scale.shape[0], (tokens + 3) // 4 * 4, device=self.x.device)
        x_scale[:, :tokens] = self.x_scale[:, :tokens]
        return Product(
            wide=self.wide[:tokens].contiguous(),
            x=self.x[:tokens].contiguous(),
            x_scale=x_scale,
            weight=self.weight,
            weight_scale=self.weight_scale,
            exact=self.exact[:tokens],
            exact_wide=self.exact_wide[:tokens],
        )


@pytest.fixture(scope="session")
def make_product(device: torch.device) -> Callable[[int, int, int], Product]:
    """Return a builder: rows of the weight, columns, tokens."""

    def make(rows: int, columns: int, tokens: int) -> Product:
        torch.manual_seed(rows + columns)
        wide = torch.randn(tokens, columns, device=device, dtype=torch.bfloat16)
        weight, weight_scale = reference.quantize_weight(
            torch.randn(rows, columns, device=device, dtype=torch.bfloat16) * 0.02
        )
        x, x_scale = reference.quantize_fp8(wide)
        dequantized = reference.dequantize_weight(weight, weight_scale).double().t()
        return Product(
            wide=wide,
            x=x,
            x_scale=x_scale,
            weight=weight,
            weight_scale=weight_scale,
            exact=reference.dequantize_activations(x, x_scale).double() @ dequantized,
            exact_wide=wide.double() @ dequantized,
        )

    return make


@pytest.fixture(scope="session")
def relative_error() -> Callable[[Tensor, Tensor], float]:
    """Return a function of (found, wanted); NaN anywhere in what was found is an infinite error."""

    def error(found: Tensor, wanted: Tensor) -> float:
        if not bool(torch.isfinite(found.float()).all()):
            return float("inf")
        return float((found.double() - wanted.double()).norm() / wanted.double().norm())

    return error
