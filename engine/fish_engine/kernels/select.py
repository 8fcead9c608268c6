"""Which implementation runs, decided once when the engine starts; the start log and a metric say which and why.

The choice is never revisited: once compiled kernels are chosen, a call that they cannot serve is an error.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import torch

from fish_engine.kernels.errors import KernelsUnavailableError

COMPILED_LIBRARY = "fish_kernels"


class Kernels(StrEnum):
    """What the user asks for, and (but for AUTO) what runs."""

    AUTO = "auto"
    COMPILED = "compiled"
    REFERENCE = "reference"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The implementation that runs, and the reason in words for the log."""

    requested: Kernels
    selected: Kernels
    reason: str

    @property
    def is_second_best(self) -> bool:
        """True where a GPU has to do without its compiled kernels: worth a warning."""
        return self.selected is Kernels.REFERENCE and self.requested is Kernels.AUTO and "GPU" in self.reason


def load_compiled_library() -> str | None:
    """Load the compiled kernels into the dispatcher; return what stands in the way, or None."""
    try:
        importlib.import_module(COMPILED_LIBRARY)
    except ImportError as error:
        return f"{COMPILED_LIBRARY} is not installed ({error})"
    except OSError as error:
        return f"{COMPILED_LIBRARY} does not load ({error})"
    return None


def select_kernels(
    requested: Kernels, device: torch.device, load: Callable[[], str | None] = load_compiled_library
) -> Selection:
    """Return what runs on the device; raise KernelsUnavailableError where `compiled` was asked for and cannot."""
    if requested is Kernels.REFERENCE:
        return Selection(requested=requested, selected=Kernels.REFERENCE, reason="asked for")
    if device.type != "cuda":
        if requested is Kernels.COMPILED:
            raise KernelsUnavailableError(
                f"kernels: expected auto or reference on {device}, found compiled, which needs an NVIDIA GPU"
            )
        return Selection(requested=requested, selected=Kernels.REFERENCE, reason=f"the device is {device}")
    obstacle = load()
    if obstacle is None:
        return Selection(requested=requested, selected=Kernels.COMPILED, reason=f"{COMPILED_LIBRARY} is loaded")
    if requested is Kernels.COMPILED:
        raise KernelsUnavailableError(f"kernels: compiled was asked for, but {obstacle}")
    return Selection(requested=requested, selected=Kernels.REFERENCE, reason=f"on a GPU, but {obstacle}")
