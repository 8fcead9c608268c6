"""The compiled half of `fish_engine.kernels`: importing this package adds the CUDA implementations to PyTorch's dispatcher."""

import ctypes
from pathlib import Path

import torch

_LIBRARY_PATH = Path(__file__).with_name("_fish_kernels.so")

torch.ops.load_library(str(_LIBRARY_PATH))  # type: ignore[no-untyped-call]
_library = ctypes.CDLL(str(_LIBRARY_PATH))

__version__ = "0.1.0"


def set_programmatic_launch(*, enabled: bool) -> None:
    """Say whether kernels may start before the kernel ahead of them has ended. Results are the same either way."""
    _library.fish_kernels_set_programmatic_launch(int(enabled))
