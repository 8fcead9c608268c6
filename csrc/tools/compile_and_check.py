"""Run nvcc, and fail when a kernel spills registers, keeps arrays in local memory or has its wgmmas serialised.

CMake puts this in front of every nvcc call: `python compile_and_check.py nvcc …`. What each kernel costs lands beside its object,
as `<object>.resources.txt`.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REGISTERS_PER_MULTIPROCESSOR = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What ptxas reports of one kernel on one architecture."""

    kernel: str
    architecture: str
    registers: int
    stack_bytes: int
    spill_bytes: int
    shared_bytes: int

    def line(self) -> str:
        """Return it as a line of the report."""
        return (
            f"{self.architecture} {self.registers:3} registers {self.shared_bytes:6} B static shared "
            f"{self.stack_bytes:4} B stack {self.spill_bytes:4} B spilled  {self.kernel}"
        )


def usages(ptxas_log: str) -> Iterator[Usage]:
    """Parse the report of `ptxas -v`."""
    pattern = re.compile(
        r"Compiling entry function '(?P<kernel>\S+)' for '(?P<architecture>\w+)'.*?"
        r"(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes spill stores, (?P<loads>\d+) bytes spill loads.*?"
        r"Used (?P<registers>\d+) registers(?P<rest>[^\n]*)",
        re.DOTALL,
    )
    for match in pattern.finditer(ptxas_log):
        shared = re.search(r"(\d+) bytes smem", match["rest"])
        yield Usage(
            kernel=match["kernel"],
            architecture=match["architecture"],
            registers=int(match["registers"]),
            stack_bytes=int(match["stack"]),
            spill_bytes=int(match["stores"]) + int(match["loads"]),
            shared_bytes=int(shared[1]) if shared else 0,
        )


def complaints(ptxas_log: str) -> list[str]:
    """Return what is wrong, one line each."""
    found = [f"spills or uses local memory: {u.line()}" for u in usages(ptxas_log) if u.spill_bytes or u.stack_bytes]
    found += [f"wgmma is serialised: {line.strip()}" for line in ptxas_log.splitlines() if "serialized" in line]
    return found


def main(command: list[str]) -> int:
    """Compile, write the report, and return what CMake should see."""
    is_compilation = "-c" in command
    done = subprocess.run(
        [*command, "-Xptxas=-v"] if is_compilation else command, stderr=subprocess.PIPE, text=True, check=False
    )
    told = [line for line in done.stderr.splitlines() if not re.match(r"ptxas info|\s+\d+ bytes stack frame", line)]
    print("\n".join(told), file=sys.stderr, end="\n" if told else "")
    if done.returncode or not is_compilation:
        return done.returncode
    target = Path(command[command.index("-o") + 1])
    target.with_name(target.name + ".resources.txt").write_text("".join(u.line() + "\n" for u in usages(done.stderr)))
    wrong = complaints(done.stderr)
    print("\n".join(wrong), file=sys.stderr, end="\n" if wrong else "")
    if wrong:
        target.unlink(missing_ok=True)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
