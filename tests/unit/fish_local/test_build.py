import json
from pathlib import Path

import pytest

from fish_local import build
from fish_local.build import fingerprint, recipes


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


def test_an_edit_makes_another_binary_of_ours_and_the_same_helm(sources: Path) -> None:
    before = {name: fingerprint(recipe, sources) for name, recipe in recipes(sources).items()}
    (sources / "node" / "node.go").write_text("package node // edited\n")
    after = {name: fingerprint(recipe, sources) for name, recipe in recipes(sources).items()}
    assert after["ours"] != before["ours"]
    assert after["helm"] == before["helm"]


@pytest.mark.parametrize("file", ["go.mod", "go.sum"])
def test_other_modules_make_other_binaries(sources: Path, file: str) -> None:
    helm = recipes(sources)["helm"]
    before = fingerprint(helm, sources)
    (sources / file).write_text("changed\n")
    assert fingerprint(helm, sources) != before


def test_tests_of_the_sources_do_not_count(sources: Path) -> None:
    ours = recipes(sources)["ours"]
    before = fingerprint(ours, sources)
    (sources / "node" / "node_test.go").write_text("package node\n")
    assert fingerprint(ours, sources) == before


def test_the_cache_is_where_the_user_keeps_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert build.cache_folder() == tmp_path / "fish-tts"
