"""`python -m fish_engine verify` passes on the golden folders and names what differs in a spoilt one."""

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

from fish_engine.__main__ import app
from fish_engine.errors import BadCheckpoint
from fish_engine.verify import GOLDEN_FILE, verify

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.fixture
def spoilt(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of a golden folder, whose results a test may change."""
    return Path(shutil.copytree(GOLDEN / request.param, tmp_path / request.param))


def faults(folder: Path) -> dict[str, str]:
    return {comparison.name: comparison.fault for comparison in verify(folder) if comparison.fault is not None}


@pytest.mark.parametrize(
    ("folder", "tensors"),
    [
        ("codec_tiny", {"codes", "audio", "audio streamed", "random_audio", "random_audio streamed"}),
        (
            "s2_tiny",
            {f"{prompt}.{part}" for prompt in ("plain", "clone") for part in ("slow_logits", "fast_logits", "frames")},
        ),
    ],
)
def test_the_golden_folders_match(folder: str, tensors: set[str]) -> None:
    comparisons = list(verify(GOLDEN / folder))
    assert [comparison.fault for comparison in comparisons if comparison.fault] == []
    assert tensors <= {comparison.name for comparison in comparisons}


@pytest.mark.parametrize("spoilt", ["codec_tiny"], indirect=True)
def test_a_wrong_sample_is_named_by_its_frame_and_index(spoilt: Path) -> None:
    golden = load_file(spoilt / GOLDEN_FILE)
    golden["audio"][3 * 2048 + 5] += 1
    save_file(golden, spoilt / GOLDEN_FILE)
    found = faults(spoilt)
    assert set(found) == {"audio"}
    assert found["audio"].startswith("step 3, element [6149]: expected ")


@pytest.mark.parametrize("spoilt", ["s2_tiny"], indirect=True)
def test_wrong_logits_and_choices_are_named_by_their_step(spoilt: Path) -> None:
    golden = load_file(spoilt / GOLDEN_FILE)
    golden["plain.fast_logits"][4, 2, 17] += 1
    golden["plain.frames"][10, 20] ^= 1  # the last codebook: no later choice of the frame depends on it
    golden["clone.slow_logits"][5, 3] = torch.nan
    save_file(golden, spoilt / GOLDEN_FILE)
    found = faults(spoilt)
    assert found["plain.fast_logits"].startswith("step 4, element [4, 2, 17]: ")
    assert found["plain.frames"].startswith("step 20, element [10, 20]: ")
    assert found["clone.slow_logits"].startswith("step 5, element [5, 3]: expected nan, ")


@pytest.mark.parametrize("spoilt", ["codec_tiny"], indirect=True)
def test_the_command_exits_1_and_says_which_tensor_differs(spoilt: Path) -> None:
    golden = load_file(spoilt / GOLDEN_FILE)
    golden["codes"][0, 8] += 1
    save_file(golden, spoilt / GOLDEN_FILE)
    result = CliRunner().invoke(app, ["verify", str(spoilt)])
    assert result.exit_code == 1
    assert "FAIL codes: step 8, element [0, 8]: expected " in result.output


def test_the_command_exits_0_when_everything_matches() -> None:
    result = CliRunner().invoke(app, ["verify", str(GOLDEN / "s2_tiny")])
    assert result.exit_code == 0, result.output
    assert "everything matches" in result.output


def test_a_folder_without_golden_results_is_refused_by_name(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["verify", str(tmp_path)])
    assert result.exit_code == 1
    assert f"{tmp_path / GOLDEN_FILE}: no such file" in result.output


def test_a_device_that_cannot_be_used_is_named_with_what_can() -> None:
    result = CliRunner().invoke(app, ["verify", "--device", "warp", str(GOLDEN / "s2_tiny")])
    assert result.exit_code == 1
    assert "device 'warp' cannot be used: expected cpu, or cuda on a machine that has it" in result.output


def test_golden_results_of_neither_kind_are_refused(tmp_path: Path) -> None:
    save_file({"weather": torch.zeros(1)}, tmp_path / GOLDEN_FILE)
    with pytest.raises(BadCheckpoint, match=r"found \['weather'\]"):
        list(verify(tmp_path))


@pytest.mark.parametrize("spoilt", ["s2_tiny"], indirect=True)
def test_a_golden_tensor_that_is_missing_is_named(spoilt: Path) -> None:
    golden = load_file(spoilt / GOLDEN_FILE)
    del golden["clone.frames"]
    save_file(golden, spoilt / GOLDEN_FILE)
    with pytest.raises(BadCheckpoint, match=r"clone\.frames is missing"):
        list(verify(spoilt))
