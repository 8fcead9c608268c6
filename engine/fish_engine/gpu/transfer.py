"""Copies between host and device that nobody waits for until the data is needed. On a CPU they are plain copies."""

import torch
from torch import Tensor


def uploaded(tensor: Tensor, device: torch.device) -> Tensor:
    """Return a copy of a host tensor on `device`, ready for work that is launched later."""
    if device.type == "cpu":
        return tensor.clone()
    # Pinned memory comes from a cache, which gives a buffer out again only after the copies from and to it have ended.
    return tensor.pin_memory().to(device, non_blocking=True)


def downloading(tensor: Tensor) -> Tensor:
    """Return a host tensor that will hold what `tensor` holds once the work launched so far is done; see `Arrival`."""
    if tensor.device.type == "cpu":
        return tensor.clone()
    host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    return host.copy_(tensor, non_blocking=True)


class Arrival:
    """The moment at which all work launched so far is done."""

    def __init__(self, device: torch.device) -> None:
        self._event = None if device.type == "cpu" else torch.cuda.Event()  # type: ignore[no-untyped-call]
        if self._event is not None:
            self._event.record()

    def wait(self) -> None:
        """Return once it has come."""
        if self._event is not None:
            self._event.synchronize()
