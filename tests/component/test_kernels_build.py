"""The compiled kernels build on a machine without a GPU or a toolkit. Minutes, and 0.4 GB of compiler: only when asked for."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

CSRC = Path(__file__).parents[2] / "csrc"

pytestmark = [
    pytest.mark.skipif("FISH_BUILD_KERNELS" not in os.environ, reason="set FISH_BUILD_KERNELS=1 to build csrc/"),
    pytest.mark.timeout(1800),
]


@pytest.fixture(scope="module")
def wheel():
    subprocess.run([CSRC / "tools" / "build.sh", sys.executable], check=True)
    return max((CSRC / "build" / "dist").glob("fish_kernels-*.whl"), key=lambda path: path.stat().st_mtime)


def test_kernels_of_both_architectures_are_compiled_and_none_spills(wheel):
    reports = list((CSRC / "build" / "cmake").rglob("*.resources.txt"))
    usages = [line for report in reports for line in report.read_text().splitlines()]
    assert {usage.split()[0] for usage in usages} == {"sm_90a", "sm_120a"}
    assert all("0 B spilled" in usage for usage in usages)


def test_the_library_loads_where_there_is_no_gpu(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    program = "import fish_engine.kernels, fish_kernels; fish_kernels.set_programmatic_launch(enabled=False)"
    subprocess.run([sys.executable, "-c", program], check=True, env=os.environ | {"PYTHONPATH": str(tmp_path)})
