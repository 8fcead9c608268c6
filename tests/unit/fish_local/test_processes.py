import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fish_local import processes
from fish_local.processes import MARK, ProcessId

SLEEP = (sys.executable, "-c", "import sys; print('up', flush=True); __import__('signal').pause()")
DEAF = (
    sys.executable,
    "-c",
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True)\nwhile True: signal.pause()",
)


class Starter:
    """Starts processes that print a line when they are ready."""

    def __init__(self, folder: Path) -> None:
        self.started: list[ProcessId] = []
        self._folder = folder

    def __call__(self, argv: tuple[str, ...]) -> ProcessId:
        log = self._folder / f"{len(self.started)}.fifo"
        os.mkfifo(log)
        # A reader that waits for its writer is there before it, so that neither end waits for ever.
        reader = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
        os.set_blocking(reader, True)
        with os.fdopen(reader) as lines:
            process = processes.start(
                argv, environment={**os.environ, MARK: str(self._folder)}, log=log, folder=self._folder
            )
            self.started.append(process)
            assert lines.readline() == "up\n"
        return process


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Starter]:
    starter = Starter(tmp_path)
    yield starter
    for process in starter.started:
        processes.kill(process, signal.SIGKILL)
        processes.wait_gone([process], timeout_s=5)


def test_a_started_process_leads_a_session_of_its_own(start: Starter) -> None:
    process = start(SLEEP)
    assert os.getsid(process.pid) == process.pid


def test_a_process_is_alive_until_it_is_killed(start: Starter) -> None:
    process = start(SLEEP)
    assert processes.is_alive(process)
    processes.kill(process, signal.SIGKILL)
    assert processes.wait_gone([process], timeout_s=5) == []
    assert not processes.is_alive(process)


def test_another_process_with_the_same_id_is_not_taken_for_it(start: Starter) -> None:
    process = start(SLEEP)
    earlier = ProcessId(pid=process.pid, started_ticks=process.started_ticks - 1)
    processes.kill(earlier, signal.SIGKILL)
    assert not processes.is_alive(earlier)
    assert processes.is_alive(process)


def test_a_zombie_is_not_alive() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        fields = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
        assert not processes.is_alive(ProcessId(pid=child.pid, started_ticks=int(fields[19])))


def test_stopping_kills_only_what_ignores_sigterm(start: Starter) -> None:
    obedient, deaf = start(SLEEP), start(DEAF)
    assert processes.stop([obedient, deaf], patience_s=0.5) == [deaf]
    assert not processes.is_alive(obedient)
    assert not processes.is_alive(deaf)


def test_waiting_ends_in_time_with_those_that_still_run(start: Starter) -> None:
    process = start(SLEEP)
    assert processes.wait_gone([process], timeout_s=0.01) == [process]


def test_processes_of_a_folder_are_found_by_their_mark(start: Starter, tmp_path: Path) -> None:
    process = start(SLEEP)
    assert processes.marked(tmp_path) == [process]
    assert processes.marked(tmp_path / "other") == []
