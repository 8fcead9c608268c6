"""The command line: exit statuses and messages that schedulers and people rely on."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from fish_cleaning.__main__ import app


@pytest.fixture(autouse=True)
def _signals_as_before() -> Iterator[None]:
    """Put back the handlers that a command installs for its process."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def corpus(tmp_path: Path, speech_folder: Path) -> Path:
    """Return a folder of ten short recordings."""
    made = call("make-corpus", "--source", speech_folder, "--out", tmp_path / "in", "--items", 10, "--max-s", 4)
    assert made.exit_code == 0, made.output
    return tmp_path / "in"


def test_a_job_runs_to_its_end_and_verifies(corpus: Path, tmp_path: Path) -> None:
    folders = ("--input", corpus, "--output", tmp_path / "out")
    summary = tmp_path / "termination-log"
    assert call("plan", *folders).output.startswith("10 recordings in 2 units")
    assert call("run", *folders, "--summary", summary).exit_code == 0
    assert json.loads(summary.read_text())["outcome"] == "complete"
    verified = call("verify", *folders, "--json")
    assert verified.exit_code == 0
    assert json.loads(verified.stdout)["items_lost"] == 0


def test_an_unfinished_output_does_not_verify(corpus: Path, tmp_path: Path) -> None:
    folders = ("--input", corpus, "--output", tmp_path / "out")
    call("plan", *folders)
    verified = call("verify", *folders)
    assert verified.exit_code == 1
    assert "NOT complete" in verified.output


@pytest.mark.parametrize(
    ("options", "exit_code", "message"),
    [
        (("--input", "/nowhere", "--output", "out"), 65, "input /nowhere: no such folder"),
        (("--input", "ftp://host/in", "--output", "out"), 65, "location ftp://host/in"),
        (("--input", "s3://", "--output", "out"), 65, "location s3://: no bucket in it"),
        (("--input", "/nowhere", "--output", "out", "--recipe", "qiuck"), 78, "recipe qiuck"),
        (("--input", "/nowhere", "--output", "out", "--max-speed", "0"), 78, "max_speed 0.0: expected"),
    ],
)
def test_what_cannot_work_is_refused_before_it_starts(options: tuple[str, ...], exit_code: int, message: str) -> None:
    result = call("run", *options)
    assert result.exit_code == exit_code
    assert message in result.output


def test_why_a_worker_failed_is_in_its_summary(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    summary = tmp_path / "termination-log"
    result = call("run", "--input", corpus, "--output", tmp_path / "file", "--summary", summary)
    assert result.exit_code == 65
    told = json.loads(summary.read_text())
    assert told["outcome"] == "failed"
    assert "expected a folder that this user may read and write" in told["error"]


def test_an_address_that_is_not_ours_is_refused(corpus: Path, tmp_path: Path) -> None:
    result = call("run", "--input", corpus, "--output", tmp_path / "out", "--host", "192.0.2.1")
    assert result.exit_code == 78
    assert "cannot listen on 192.0.2.1:8080" in result.output


def test_verifying_what_is_no_output_is_refused(corpus: Path, tmp_path: Path) -> None:
    result = call("verify", "--input", corpus, "--output", tmp_path)
    assert result.exit_code == 65
    assert "no plan.json" in result.output
