"""Where tensors live."""

import torch

from fish_engine.errors import EngineError


def usable_device(name: str) -> torch.device:
    """Return the device of this name; raise EngineError unless a tensor can be made on it."""
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:  # torch without CUDA asserts
        reason = str(error).splitlines()[0]
        raise EngineError(
            f"device {name!r} cannot be used: expected cpu, or cuda on a machine that has it; {reason}"
        ) from error
    return device
