"""The build's guard: what ptxas says of a kernel, and when that fails the build."""

import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "csrc" / "tools" / "compile_and_check.py"
CLEAN = """\
ptxas info    : Compiling entry function '_Z4gemm' for 'sm_90a'
ptxas info    : Function properties for _Z4gemm
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 126 registers, used 2 barriers, 128 bytes smem
ptxas info    : Compiling entry function '_Z5quant' for 'sm_120a'
ptxas info    : Function properties for _Z5quant
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 26 registers
"""
SPILLED = CLEAN.replace("0 bytes stack frame, 0 bytes spill stores", "56 bytes stack frame, 124 bytes spill stores", 1)
SERIALISED = CLEAN + (
    "ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
    "insufficient register resources for the wgmma pipeline in the function '_Z4gemm'\n"
)


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("compile_and_check", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["compile_and_check"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["compile_and_check"]


def test_the_cost_of_each_kernel_is_read_from_the_log(script):
    first, second = script.usages(CLEAN)
    assert (first.kernel, first.architecture, first.registers, first.shared_bytes) == ("_Z4gemm", "sm_90a", 126, 128)
    assert (second.kernel, second.architecture, second.registers, second.shared_bytes) == ("_Z5quant", "sm_120a", 26, 0)


def test_a_clean_kernel_is_not_complained_about(script):
    assert script.complaints(CLEAN) == []


def test_a_spilling_kernel_is_named(script):
    (complaint,) = script.complaints(SPILLED)
    assert "_Z4gemm" in complaint
    assert "124 B spilled" in complaint


def test_serialised_wgmmas_are_complained_about(script):
    (complaint,) = script.complaints(SERIALISED)
    assert "serialised" in complaint


def test_a_compiler_that_fails_passes_its_status_on(script):
    assert script.main([sys.executable, "-c", "raise SystemExit(3)"]) == 3
