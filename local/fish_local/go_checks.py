"""What `make check` asks of the Go sources: formatted, nothing that vet finds, tests that pass."""

import subprocess
from pathlib import Path

from fish_local.build import SOURCES
from fish_local.errors import CheckFailed
from fish_local.progress import Narrator
from fish_local.toolchain import find_go


def check(narrator: Narrator) -> None:
    """Run the checks in order.

    Raises:
        CheckFailed: with what the first check that failed has to say.
    """
    go = find_go(narrator.say)
    root = Path(_output([go, "env", "GOROOT"]).strip())
    if unformatted := _output([root / "bin" / "gofmt", "-l", "."]).split():
        raise CheckFailed(f"not as gofmt would write it: {', '.join(unformatted)}; run `gofmt -w` in {SOURCES}")
    # Our own package only, with the flags of the build: vet reads everything that a package is made of, and for the whole
    # program that is Kubernetes.
    for command in (["vet", "-trimpath", "./node/..."], ["test", "-trimpath", "./node/..."]):
        narrator.say(f"go {' '.join(command)}")
        narrator.say(_output([go, *command]).rstrip())


def _output(command: list[str | Path]) -> str:
    answer = subprocess.run(command, cwd=SOURCES, capture_output=True, text=True, check=False)
    if answer.returncode:
        shown = " ".join(map(str, command))
        raise CheckFailed(f"`{shown}` in {SOURCES} ended with {answer.returncode}:\n{answer.stdout}{answer.stderr}")
    return answer.stdout
