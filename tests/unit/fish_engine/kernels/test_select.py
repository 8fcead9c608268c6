import pytest
import torch

from fish_engine.kernels.errors import KernelsUnavailableError
from fish_engine.kernels.select import Kernels, select_kernels

CPU, GPU = torch.device("cpu"), torch.device("cuda", 0)


def loads():
    return None


def fails():
    return "fish_kernels is not installed (No module named 'fish_kernels')"


@pytest.mark.parametrize(
    ("requested", "device", "load", "selected"),
    [
        (Kernels.AUTO, CPU, fails, Kernels.REFERENCE),
        (Kernels.AUTO, GPU, loads, Kernels.COMPILED),
        (Kernels.AUTO, GPU, fails, Kernels.REFERENCE),
        (Kernels.REFERENCE, GPU, loads, Kernels.REFERENCE),
        (Kernels.COMPILED, GPU, loads, Kernels.COMPILED),
    ],
)
def test_the_choice_follows_the_request_the_device_and_what_loads(requested, device, load, selected):
    assert select_kernels(requested, device, load).selected is selected


def test_a_gpu_without_its_kernels_is_worth_a_warning_that_says_why():
    selection = select_kernels(Kernels.AUTO, GPU, fails)
    assert selection.is_second_best
    assert "No module named 'fish_kernels'" in selection.reason


@pytest.mark.parametrize(
    "selection", [select_kernels(Kernels.AUTO, CPU, fails), select_kernels(Kernels.AUTO, GPU, loads)]
)
def test_the_best_there_can_be_is_not(selection):
    assert not selection.is_second_best


def test_compiled_kernels_without_a_gpu_are_an_error():
    with pytest.raises(KernelsUnavailableError, match="auto or reference on cpu, found compiled"):
        select_kernels(Kernels.COMPILED, CPU, loads)


def test_compiled_kernels_that_do_not_load_are_an_error():
    with pytest.raises(KernelsUnavailableError, match="not installed"):
        select_kernels(Kernels.COMPILED, GPU, fails)
