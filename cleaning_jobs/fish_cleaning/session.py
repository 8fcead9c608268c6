"""The life of one worker process: prepare, serve its status, work, leave with the right exit status."""

import json
import os
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NoReturn

from fish_cleaning.errors import CleaningError
from fish_cleaning.events import log_event
from fish_cleaning.locations import open_source, open_store
from fish_cleaning.plan import ensure_plan
from fish_cleaning.progress import Progress
from fish_cleaning.recipe import check_max_speed, load_recipe
from fish_cleaning.run import Job, Worker
from fish_cleaning.steps.chain import load_models
from fish_cleaning.stopping import StopRequest, disarm
from fish_cleaning.tally import Tally
from fish_contracts.exit_codes import ExitCode


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What the command line asks of a worker. Without a host it serves no status."""

    input: str
    output: str
    recipe: str
    host: str | None
    port: int
    metrics_port: int
    max_speed: float | None
    lease_ttl_s: float
    summary_path: Path | None


def run_worker(options: RunOptions) -> None:
    """Work until the job is complete; a stop signal ends the process from inside."""
    tally = Tally()
    try:
        _work(options, tally)
    except CleaningError as error:
        _end(options, tally, outcome="failed", error=str(error))
        raise
    _end(options, tally, outcome="complete")


def _work(options: RunOptions, tally: Tally) -> None:
    job = _job(options)
    load_models()
    stop = StopRequest()
    worker = Worker(job, stop=stop, tally=tally)
    progress = Progress(job.store, job.plan, tally)

    def leave() -> NoReturn:
        """Secure what is finished and end; no thread is waited for."""
        disarm()
        try:
            worker.secure()
        except CleaningError as error:
            log_event("could not secure work", error=str(error))
        _end(options, tally, outcome="preempted", stop_s=round(time.monotonic() - stop.requested_at_s, 4))
        os._exit(ExitCode.PREEMPTED)

    stop.listen(leave)
    _show(options, tally, progress)
    is_complete = worker.run()
    if not is_complete:
        leave()


def _job(options: RunOptions) -> Job:
    check_max_speed(options.max_speed)
    recipe = load_recipe(options.recipe)
    if options.max_speed is not None:
        recipe = replace(recipe, max_speed=options.max_speed)
    source, store = open_source(options.input), open_store(options.output)
    plan = ensure_plan(store, source, recipe)
    return Job(plan=plan, recipe=recipe, source=source, store=store, lease_ttl_s=options.lease_ttl_s)


def _show(options: RunOptions, tally: Tally, progress: Progress) -> None:
    if options.host is not None:
        # Loaded only where somebody will ask: 0.1 s.
        from fish_cleaning.status_server import serve_metrics, serve_progress  # noqa: PLC0415
        from fish_cleaning.telemetry import registry_of  # noqa: PLC0415

        serve_progress(progress, host=options.host, port=options.port)
        serve_metrics(registry_of(tally, progress), host=options.host, port=options.metrics_port)
    if sys.stderr.isatty():
        from fish_cleaning.progress_bar import draw_in_background  # noqa: PLC0415

        draw_in_background(progress)


def _end(
    options: RunOptions,
    tally: Tally,
    *,
    outcome: Literal["complete", "preempted", "failed"],
    stop_s: float | None = None,
    error: str | None = None,
) -> None:
    """Say how it ended: to people on stderr, to the node in the file that it named."""
    summary = {
        "outcome": outcome,
        "units_published": tally.units_published,
        "items_committed": tally.items["committed"],
        "items_rejected": tally.items.total() - tally.items["committed"],
        "items_redone": tally.items_redone,
        "audio_s": round(tally.audio_s, 3),
        "stop_s": stop_s,
        "error": error,
    }
    if options.summary_path is not None:
        try:
            options.summary_path.write_text(json.dumps(summary) + "\n", encoding="utf-8")
        except OSError as problem:
            log_event("could not write the summary", error=str(problem))
    if sys.stderr.isatty():
        print(f"\nOne worker: {summary}", file=sys.stderr)
        if outcome == "preempted":
            print("Stopped; finished work is safe. The same command continues the job.", file=sys.stderr)
    else:
        log_event("worker ended", **summary)
