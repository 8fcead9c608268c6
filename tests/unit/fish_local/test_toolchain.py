from pathlib import Path

import pytest

from fish_local import toolchain
from fish_local.toolchain import parsed_go_version


@pytest.mark.parametrize(
    ("printed", "version"),
    [
        ("go version go1.26.8 linux/amd64", (1, 26)),
        ("go version go1.27rc1 linux/arm64", (1, 27)),
        ("gcc (Debian 12.2.0)", None),
        ("", None),
    ],
)
def test_the_version_is_read_from_what_go_prints(printed: str, version: tuple[int, int] | None) -> None:
    assert parsed_go_version(printed) == version


@pytest.mark.parametrize(("printed", "is_enough"), [("go1.26.0", True), ("go2.0", True), ("go1.25.9", False)])
def test_only_a_recent_go_will_do(tmp_path: Path, printed: str, is_enough: bool) -> None:
    go = tmp_path / "go"
    go.write_text(f"#!/bin/sh\necho go version {printed} linux/amd64\n")
    go.chmod(0o755)
    assert toolchain.is_new_enough(go) is is_enough


def test_a_program_that_cannot_run_is_no_go(tmp_path: Path) -> None:
    assert not toolchain.is_new_enough(tmp_path / "go")


def test_kubectl_comes_with_the_environment() -> None:
    assert toolchain.find_kubectl().exists()
