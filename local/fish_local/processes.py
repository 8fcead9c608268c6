"""Processes that outlive the command that started them, and proof of which ones are ours.

A process is named by its id and its start time: ids are used again, pairs are not (until a reboot). Everything started
here also carries the state folder in its environment, and so do its children: that is how `down` finds the processes of
pods, and anything that an `up` killed half-way had no time to write down.
"""

import os
import select
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MARK: Final = "FISH_LOCAL_STATE"
"""Environment variable that every process of a cluster has: the cluster's state folder."""

_PROC: Final = Path("/proc")
_GONE_STATES: Final = frozenset("ZX")
_started_here: Final[dict[int, subprocess.Popen[bytes]]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessId:
    """One process, for good. `started_ticks` is field 22 of /proc/PID/stat: clock ticks since boot."""

    pid: int
    started_ticks: int


def boot_id() -> str:
    """Return what the kernel calls this boot; process ids of another boot mean nothing."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def start(argv: Sequence[str], *, environment: Mapping[str, str], log: Path, folder: Path) -> ProcessId:
    """Start a process in a session of its own, so that neither Ctrl-C nor the end of this command reaches it."""
    with log.open("ab") as output:
        child = subprocess.Popen(
            argv,
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _started_here[child.pid] = child  # a parent that lives on, such as a test run, must reap its children
    return ProcessId(pid=child.pid, started_ticks=_stat(child.pid)[1])


def is_alive(process: ProcessId) -> bool:
    """Tell whether this very process still runs; a zombie does not."""
    child = _started_here.get(process.pid)
    if child is not None and child.poll() is not None:
        del _started_here[process.pid]
    state, started_ticks = _stat(process.pid)
    return started_ticks == process.started_ticks and state not in _GONE_STATES


def marked(state_dir: Path) -> list[ProcessId]:
    """Return the living processes whose environment carries the mark of this state folder, other than this one."""
    wanted = f"{MARK}={state_dir}".encode()
    found = []
    for entry in _PROC.iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:  # gone meanwhile, or somebody else's
            continue
        if wanted in environment.split(b"\0"):
            found.append(ProcessId(pid=int(entry.name), started_ticks=_stat(int(entry.name))[1]))
    return [process for process in found if is_alive(process)]


def kill(process: ProcessId, number: signal.Signals) -> None:
    """Send a signal, if this very process still runs."""
    if is_alive(process):
        with suppress(ProcessLookupError):  # it ended in between
            os.kill(process.pid, number)


def stop(processes: Iterable[ProcessId], *, patience_s: float) -> list[ProcessId]:
    """SIGTERM all, wait until they are gone, SIGKILL those that are not after `patience_s`; return these."""
    processes = list(processes)
    for process in processes:
        kill(process, signal.SIGTERM)
    stubborn = wait_gone(processes, timeout_s=patience_s)
    for process in stubborn:
        kill(process, signal.SIGKILL)
    wait_gone(stubborn, timeout_s=patience_s)
    return stubborn


def wait_gone(processes: Iterable[ProcessId], *, timeout_s: float) -> list[ProcessId]:
    """Wait until the processes have ended; return those that still run after `timeout_s`."""
    deadline_s = time.monotonic() + timeout_s
    return [process for process in processes if not _is_gone_by(process, deadline_s)]


def _is_gone_by(process: ProcessId, deadline_s: float) -> bool:
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return not is_alive(process)
    try:
        if is_alive(process):
            ending = select.poll()
            ending.register(descriptor, select.POLLIN)
            ending.poll(max(0.0, deadline_s - time.monotonic()) * 1000)
    finally:
        os.close(descriptor)
    return not is_alive(process)


def _stat(pid: int) -> tuple[str, int]:
    """Return the state letter and the start time of a process, ("X", -1) when there is none."""
    try:
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return "X", -1
    # The second field, the name, may hold spaces and parentheses; the last ")" ends it.
    fields = text.rpartition(")")[2].split()
    return fields[0], int(fields[19])
