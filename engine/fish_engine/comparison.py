"""Comparing a tensor with what it should be, and saying where it is most wrong."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One tensor against its expectation. `worst` is the largest difference, infinite where a value is not a number."""

    name: str
    tolerance: float
    worst: float
    fault: str | None
    """Where it is most wrong, or None within tolerance."""


def compare(name: str, *, expected: Tensor, found: Tensor, tolerance: float, step_of: tuple[int, int]) -> Comparison:
    """Compare two tensors of any devices element by element; integers with tolerance 0 must be equal.

    `step_of` is (dimension, positions per step): along that dimension an index belongs to step index // positions. The first
    step that differs is reported, because later ones may differ only for its sake, with its worst element.
    """
    expected, found = expected.cpu(), found.cpu()
    if expected.shape != found.shape:
        fault = f"expected shape {list(expected.shape)}, found {list(found.shape)}"
        return Comparison(name=name, tolerance=tolerance, worst=float("inf"), fault=fault)
    difference = (found.double() - expected.double()).abs().nan_to_num(nan=torch.inf, posinf=torch.inf)
    # Infinity less infinity is not a number; where both are the same it is no difference.
    difference = torch.where(found == expected, 0.0, difference)
    worst = float(difference.max()) if difference.numel() else 0.0
    if worst <= tolerance:
        return Comparison(name=name, tolerance=tolerance, worst=worst, fault=None)
    dimension, per_step = step_of
    by_position = difference.movedim(dimension, 0).flatten(1).amax(1) if difference.ndim > 1 else difference
    step = int((by_position > tolerance).nonzero()[0]) // per_step
    first = step * per_step
    of_step = difference.narrow(dimension, first, min(per_step, difference.shape[dimension] - first))
    index = [int(i) for i in torch.unravel_index(of_step.argmax(), of_step.shape)]
    index[dimension] += first
    at = tuple(index)
    fault = f"step {step}, element {list(at)}: expected {expected[at].item()}, found {found[at].item()}"
    return Comparison(name=name, tolerance=tolerance, worst=worst, fault=fault)
