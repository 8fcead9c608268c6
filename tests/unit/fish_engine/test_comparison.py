"""A comparison names the first step that differs and the worst element of it."""

import pytest
import torch
from torch import Tensor

from fish_engine.comparison import Comparison, compare


def compared(
    expected: Tensor, found: Tensor, *, tolerance: float = 0.1, step_of: tuple[int, int] = (0, 1)
) -> Comparison:
    return compare("x", expected=expected, found=found, tolerance=tolerance, step_of=step_of)


def test_values_within_tolerance_are_no_fault() -> None:
    comparison = compared(torch.zeros(4, 3), torch.full((4, 3), 0.05))
    assert comparison.fault is None
    assert comparison.worst == pytest.approx(0.05)


def test_the_first_step_that_differs_is_named_with_its_worst_element() -> None:
    found = torch.zeros(4, 3)
    found[1, 0], found[1, 2], found[3, 1] = 0.2, 0.5, 9.0
    comparison = compared(torch.zeros(4, 3), found)
    assert comparison.fault == "step 1, element [1, 2]: expected 0.0, found 0.5"
    assert comparison.worst == 9.0


def test_steps_may_run_along_any_dimension() -> None:
    found = torch.zeros(3, 5, dtype=torch.long)
    found[2, 4] = 7
    comparison = compared(torch.zeros(3, 5, dtype=torch.long), found, tolerance=0, step_of=(1, 1))
    assert comparison.fault == "step 4, element [2, 4]: expected 0, found 7"


def test_a_step_may_have_several_positions() -> None:
    found = torch.zeros(10)
    found[7] = 1.0
    comparison = compared(torch.zeros(10), found, step_of=(0, 4))
    assert comparison.fault == "step 1, element [7]: expected 0.0, found 1.0"


def test_a_last_step_may_be_short() -> None:
    found = torch.zeros(10)
    found[9] = 1.0
    assert compared(torch.zeros(10), found, step_of=(0, 4)).fault == "step 2, element [9]: expected 0.0, found 1.0"


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_what_is_not_a_finite_number_is_a_fault_of_infinite_size(value: float) -> None:
    found = torch.zeros(3)
    found[1] = value
    comparison = compared(torch.zeros(3), found)
    assert comparison.worst == float("inf")
    assert comparison.fault == f"step 1, element [1]: expected 0.0, found {value}"


def test_an_expected_infinity_matches_itself() -> None:
    masked = torch.tensor([0.0, -torch.inf])
    assert compared(masked, masked.clone()).fault is None


def test_another_shape_is_a_fault() -> None:
    assert compared(torch.zeros(2, 3), torch.zeros(3, 2)).fault == "expected shape [2, 3], found [3, 2]"
