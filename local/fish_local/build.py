"""Builds the Go programs of a local cluster, once for each version of their sources.

They go to a cache outside the tree, in a folder named by what they are made of, so that a second checkout or a later run
finds them and an edit makes new ones.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fish_local.errors import BuildFailed
from fish_local.progress import Narrator
from fish_local.toolchain import find_go

SOURCES: Final = Path(__file__).parents[1] / "cluster"
CLUSTER_BINARY: Final = "fish-cluster"
HELM_BINARY: Final = "helm"

_UNUSED_AFTER_S: Final = 14 * 24 * 3600
_LAST_LINES: Final = 15
_GO_SAYS: Final = "go: "
"""How Go begins a line about its own work, such as a download."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One binary of the build.json in `sources`."""

    sources: Path
    name: str
    package: str
    ldflags: str
    flags: tuple[str, ...]

    @property
    def is_ours(self) -> bool:
        """Whether our own sources go into it, and not only the modules that go.mod names."""
        return self.package.startswith(".")


def recipes(sources: Path) -> dict[str, Recipe]:
    """Return what build.json says, by the name of the binary.

    Raises:
        BuildFailed: there are no sources, as in an installation from a wheel.
    """
    if not (sources / "build.json").is_file():
        raise BuildFailed(
            f"{sources} has no sources of the cluster; they are in the repository only: "
            "run fish-local from a checkout, or install that with `pip install -e '.[local]'`"
        )
    plan = json.loads((sources / "build.json").read_text())
    flags = tuple(plan.get("flags", ()))
    return {
        binary["name"]: Recipe(
            sources=sources, name=binary["name"], package=binary["package"], ldflags=binary["ldflags"], flags=flags
        )
        for binary in plan["binaries"]
    }


def fingerprint(recipe: Recipe) -> str:
    """Return a hash of all that a binary is made of: the flags, the pinned modules and, where they matter, our sources."""
    sources = recipe.sources
    digest = hashlib.sha256(repr((recipe.name, recipe.package, recipe.ldflags, recipe.flags)).encode())
    files = [sources / "go.mod", sources / "go.sum"]
    if recipe.is_ours:
        files += sorted(path for path in sources.rglob("*.go") if not path.name.endswith("_test.go"))
    for file in files:
        digest.update(f"\0{file.relative_to(sources)}\0".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def cache_folder() -> Path:
    """Return where built programs are kept: XDG's cache folder, as other programs do."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fish-tts"


def ensure_built(narrator: Narrator, *names: str, sources: Path = SOURCES) -> dict[str, Path]:
    """Return the programs named, or all, building those that the cache lacks.

    Raises:
        BuildFailed: with the end of the compiler's output.
        ToolMissing: there is no Go and none can be installed.
    """
    planned = recipes(sources)
    return {name: _ensure(planned[name], narrator) for name in names or planned}


def _ensure(recipe: Recipe, narrator: Narrator) -> Path:
    folder = cache_folder() / fingerprint(recipe)
    binary = folder / recipe.name
    if not binary.exists():
        with _locked(folder.with_suffix(".lock"), recipe.name, narrator):
            if not binary.exists():  # another process may have built it while this one waited
                _build(recipe, binary, narrator)
                _remove_unused(cache_folder(), now_s=time.time())
    os.utime(folder)
    return binary


def _build(recipe: Recipe, binary: Path, narrator: Narrator) -> None:
    go = find_go(narrator.say)
    work = f"building {recipe.name}"
    narrator.say(f"{work} (minutes the first time, most of them for Kubernetes)")
    binary.parent.mkdir(parents=True, exist_ok=True)
    total = len(_packages(go, recipe, narrator))
    compiled = 0

    def count(line: str) -> None:
        nonlocal compiled
        compiled += 1
        narrator.advance(work, min(compiled, total - 1), total)

    with tempfile.TemporaryDirectory(dir=binary.parent) as scratch:
        draft = Path(scratch) / recipe.name
        settings = [*recipe.flags, "-ldflags", recipe.ldflags]
        command: list[str | Path] = [go, "build", "-v", *settings, "-o", draft, recipe.package]
        _run(command, recipe.sources, count)
        if fingerprint(recipe) != binary.parent.name:
            raise BuildFailed(f"the sources of {recipe.name} were edited while it was built: build it again")
        draft.rename(binary)
    narrator.advance(work, total, total)


def _packages(go: Path, recipe: Recipe, narrator: Narrator) -> list[str]:
    """Return every package that goes into a binary; Go fetches the modules that it does not have yet."""
    is_first = True

    def tell(line: str) -> None:
        nonlocal is_first
        if line.startswith(_GO_SAYS) and is_first:
            narrator.say(f"{line.removeprefix(_GO_SAYS)}, and all other modules that are not here yet")
            is_first = False

    lines = _run([go, "list", "-deps", recipe.package], recipe.sources, tell)
    return [line for line in lines if not line.startswith(_GO_SAYS)]


def _run(command: Sequence[str | Path], folder: Path, saw: Callable[[str], None]) -> list[str]:
    """Run a command of Go, showing each line that it prints to `saw`; return them all."""
    lines = []
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in map(str.rstrip, process.stdout):
            lines.append(line)
            saw(line)
    if process.returncode:
        end = "\n".join(lines[-_LAST_LINES:])
        raise BuildFailed(f"`{' '.join(map(str, command))}` in {folder} ended with {process.returncode}:\n{end}")
    return lines


@contextmanager
def _locked(lock: Path, name: str, narrator: Narrator) -> Iterator[None]:
    """Let one process build; others wait for it and then find the result."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            narrator.say(f"another process is building {name}: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _remove_unused(cache: Path, *, now_s: float) -> None:
    """Drop programs that nobody asked for in two weeks: each edit of the sources leaves 140 MB behind."""
    for lock in cache.glob("*.lock"):
        folder = lock.with_suffix("")
        if folder.is_dir() and now_s - folder.stat().st_mtime > _UNUSED_AFTER_S:
            shutil.rmtree(folder)
            lock.unlink()
