"""Reads what workers said at the end of their runs, from the folder that they share with the filler."""

import contextlib
import json
from collections.abc import Iterable
from pathlib import Path

from fish_slurm.view import Job, Label, Phase, RunSummary


def parse_summary(text: str) -> RunSummary | None:
    """Return the summary in one line of JSON; None for anything else, for a killed worker may leave half a line."""
    try:
        raw = json.loads(text)
        finished = int(raw["items_committed"]) + int(raw["items_rejected"])
        stop_s = raw.get("stop_s")
        return RunSummary(
            is_complete=raw["outcome"] == "complete",
            items_finished=finished,
            stop_s=None if stop_s is None else float(stop_s),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


class RunFolder:
    """The run folder, `NAME/JOB.RUN.json` below it. Keeps what it read while the job is in the queue."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: dict[tuple[int, int], RunSummary] = {}

    def prepare(self, names: Iterable[str]) -> None:
        """Make the folders that Slurm needs for logs; it does not make them itself and kills a job that has none."""
        for name in names:
            (self._path / name).mkdir(parents=True, exist_ok=True)

    def complete(self, names: Iterable[str]) -> frozenset[str]:
        """Return the cleaning jobs of which some worker, at any time, said that they are complete."""
        return frozenset(name for name in names if any(map(_says_complete, (self._path / name).glob("*.json"))))

    def summaries(self, jobs: Iterable[Job]) -> dict[tuple[int, int], RunSummary]:
        """Return what the last ended run of each labelled job said."""
        ended = {
            (job.job_id, job.restarts if job.phase is Phase.ENDED else job.restarts - 1): job.label
            for job in jobs
            if job.label is not None and (job.phase is Phase.ENDED or job.restarts > 0)
        }
        self._read = {key: summary for key, label in ended.items() if (summary := self._summary(key, label))}
        return self._read

    def _summary(self, key: tuple[int, int], label: Label) -> RunSummary | None:
        if key in self._read:
            return self._read[key]
        job_id, run = key
        with contextlib.suppress(OSError):
            return parse_summary((self._path / label.name / f"{job_id}.{run}.json").read_text())
        return None


def _says_complete(path: Path) -> bool:
    with contextlib.suppress(OSError):
        summary = parse_summary(path.read_text())
        return summary is not None and summary.is_complete
    return False
