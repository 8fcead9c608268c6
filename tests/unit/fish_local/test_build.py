import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from fish_local import build
from fish_local.build import ensure_built, fingerprint, recipes
from fish_local.errors import BuildFailed
from fish_local.progress import LineNarrator

GO = """#!/bin/sh
case "$1" in
  version) echo go version go1.26.0 linux/amd64 ;;
  list) echo "go: downloading x v1"; echo "go: downloading y v1"; printf "a\\nb\\nc\\n" ;;
  build)
    if [ -e broken ]; then echo "./main.go:1: this is not Go"; exit 1; fi
    if [ -e edited ]; then echo "package node // edited" >node/node.go; fi
    echo a; echo b
    while [ "$1" != -o ]; do shift; done
    echo built >>"$2" ;;
esac
"""


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    (tmp_path / "node").mkdir()
    (tmp_path / "go.mod").write_text("module m\n")
    (tmp_path / "go.sum").write_text("")
    (tmp_path / "node" / "node.go").write_text("package node\n")
    binaries = [{"name": "ours", "package": ".", "ldflags": "-s"}, {"name": "helm", "package": "x/helm", "ldflags": ""}]
    (tmp_path / "build.json").write_text(json.dumps({"flags": ["-trimpath"], "binaries": binaries}))
    return tmp_path


def test_the_plan_names_the_cluster_and_helm() -> None:
    assert {build.CLUSTER_BINARY, build.HELM_BINARY} == set(recipes(build.SOURCES))


def test_without_a_checkout_it_is_said_where_the_sources_are(tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match="from a checkout"):
        recipes(tmp_path)


def test_an_edit_makes_another_binary_of_ours_and_the_same_helm(sources: Path) -> None:
    before = {name: fingerprint(recipe) for name, recipe in recipes(sources).items()}
    (sources / "node" / "node.go").write_text("package node // edited\n")
    after = {name: fingerprint(recipe) for name, recipe in recipes(sources).items()}
    assert after["ours"] != before["ours"]
    assert after["helm"] == before["helm"]


@pytest.mark.parametrize("file", ["go.mod", "go.sum"])
def test_other_modules_make_other_binaries(sources: Path, file: str) -> None:
    helm = recipes(sources)["helm"]
    before = fingerprint(helm)
    (sources / file).write_text("changed\n")
    assert fingerprint(helm) != before


def test_tests_of_the_sources_do_not_count(sources: Path) -> None:
    ours = recipes(sources)["ours"]
    before = fingerprint(ours)
    (sources / "node" / "node_test.go").write_text("package node\n")
    assert fingerprint(ours) == before


def test_the_cache_is_where_the_user_keeps_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert build.cache_folder() == tmp_path / "fish-tts"


class Shown(LineNarrator):
    """Keeps what it prints."""

    def __init__(self) -> None:
        self.out = io.StringIO()
        super().__init__(Console(file=self.out))


@pytest.fixture
def go(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Put a Go on the PATH that compiles at once, and start with an empty cache."""
    folder = tmp_path_factory.mktemp("go")
    (folder / "go").write_text(GO)
    (folder / "go").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))


@pytest.mark.usefixtures("go")
def test_a_program_is_built_once_and_then_found(sources: Path) -> None:
    first = ensure_built(Shown(), "ours", sources=sources)["ours"]
    shown = Shown()
    assert ensure_built(shown, "ours", sources=sources)["ours"] == first
    assert first.read_text() == "built\n"
    assert shown.out.getvalue() == ""


@pytest.mark.usefixtures("go")
def test_a_build_shows_how_far_it_is_and_downloads_in_one_line(sources: Path) -> None:
    shown = Shown()
    ensure_built(shown, "ours", sources=sources)
    assert shown.out.getvalue().splitlines()[1:] == [
        "downloading x v1, and all other modules that are not here yet",
        "building ours: 1 of 3",
        "building ours: 2 of 3",
        "building ours: 3 of 3",
    ]


@pytest.mark.usefixtures("go")
def test_a_failed_build_shows_what_the_compiler_said_and_leaves_nothing(sources: Path) -> None:
    (sources / "broken").touch()
    with pytest.raises(BuildFailed, match="this is not Go"):
        ensure_built(Shown(), "ours", sources=sources)
    (sources / "broken").unlink()
    assert ensure_built(Shown(), "ours", sources=sources)["ours"].exists()


@pytest.mark.usefixtures("go")
def test_sources_that_are_edited_during_a_build_are_not_taken_for_the_old_ones(sources: Path) -> None:
    (sources / "edited").touch()
    with pytest.raises(BuildFailed, match="were edited while it was built"):
        ensure_built(Shown(), "ours", sources=sources)
