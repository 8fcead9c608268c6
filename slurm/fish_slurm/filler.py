"""The filler: observe, decide, act, again. It submits and un-delays cleaning; it never takes a GPU from anyone."""

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import assert_never

import structlog

from fish_slurm.backend import Backend
from fish_slurm.backlog import Backlog
from fish_slurm.batch_file import batch_file
from fish_slurm.brake import Memory
from fish_slurm.decide import Action, Cancel, Hold, Limits, Plan, StartNow, Submit, decide
from fish_slurm.errors import BadSetting, FishSlurmError, SlurmFailed
from fish_slurm.summaries import RunFolder
from fish_slurm.telemetry import Telemetry
from fish_slurm.view import ClusterView

_LONGEST_PAUSE_S = 30.0
_PATIENCE_S = 5.0
_log = structlog.get_logger()


class Filler:
    """One filler for one backlog. `tick` is the whole of it."""

    def __init__(self, *, backend: Backend, backlog: Backlog, limits: Limits, telemetry: Telemetry) -> None:
        self._backend = backend
        self._backlog = backlog
        self._limits = limits
        self._telemetry = telemetry
        self._runs = RunFolder(backlog.run_folder)
        self._runs.prepare(backlog.work)
        self._memory = Memory(complete=self._runs.complete(backlog.work))
        self._stopped: dict[str, str] = {}

    def tick(self) -> Plan:
        """Look at the cluster once and do what follows."""
        view = self._observe()
        plan = decide(view, self._backlog.work, self._memory, self._limits)
        self._memory = plan.memory
        self._telemetry.saw(view, plan)
        self._report_stopped(plan)
        for action in plan.actions:
            self._apply(action)
            self._telemetry.did(action)
        return plan

    def run(self, stop: threading.Event, *, interval_s: float) -> None:
        """Tick until told to stop. A Slurm that does not answer, or refuses workers, is asked less and less often."""
        pause_s = interval_s
        while not stop.wait(pause_s):
            begun_s = time.perf_counter()
            try:
                self.tick()
                pause_s = interval_s
            except FishSlurmError as error:
                self._telemetry.failed()
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
                _log.warning("Slurm does not take part", error=str(error), next_try_s=pause_s)
            self._telemetry.looped(time.perf_counter() - begun_s)

    def _observe(self) -> ClusterView:
        jobs, nodes = self._backend.jobs(), self._backend.nodes()
        return ClusterView(now_s=time.time(), jobs=jobs, nodes=nodes, summaries=self._runs.summaries(jobs))

    def _apply(self, action: Action) -> None:
        match action:
            case StartNow():
                self._change(self._backend.start_now, action.job_id)
            case Hold():
                _log.warning("job held", job=action.job_id, reason=action.reason)
                self._change(self._backend.hold, action.job_id)
            case Cancel():
                _log.info("job removed", job=action.job_id, reason=action.reason)
                self._change(self._backend.cancel_pending, action.job_id)
            case Submit():
                # A refusal here would be the same for the next worker: it ends the tick, and `run` slows down.
                worker = replace(self._backlog.worker(action.name), slot=action.slot)
                job_id = self._backend.submit(batch_file(worker))
                _log.info("worker submitted", cleaning_job=action.name, slot=action.slot, job=job_id)
            case _:
                assert_never(action)

    def _change(self, call: Callable[[int], None], job_id: int) -> None:
        try:
            call(job_id)
        except SlurmFailed as error:
            # Mostly only late: the job began to run, or ended, since it was seen. The next look tells.
            self._telemetry.failed()
            _log.info("Slurm refused a change", job=job_id, error=str(error))

    def _report_stopped(self, plan: Plan) -> None:
        for name, reason in plan.stopped.items():
            if self._stopped.get(name) != reason:
                _log.info("cleaning job gets no more workers", cleaning_job=name, reason=reason)
        self._stopped = dict(plan.stopped)


@contextlib.contextmanager
def only_filler(run_folder: Path) -> Iterator[int]:
    """Hold the run folder's lock for the length of a `with` block and give its descriptor.

    Commands inherit it, so that the filler after a killed one waits for what that one was just submitting.
    """
    try:
        run_folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(run_folder / "filler.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise BadSetting(
            f"run_folder {run_folder}: {error.strerror}; the filler's user must be able to write there"
        ) from error
    try:
        _lock_within(lock, run_folder)
        yield lock
    finally:
        os.close(lock)


def _lock_within(lock: int, run_folder: Path) -> None:
    deadline_s = time.monotonic() + _PATIENCE_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > deadline_s:
                raise BadSetting(f"another filler works with {run_folder}; one run folder has one filler") from error
            time.sleep(0.1)
        else:
            return
