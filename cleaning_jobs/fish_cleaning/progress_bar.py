"""One line on a terminal that says how far the job is."""

import sys
import threading
import time
from typing import Final

from fish_cleaning.progress import Progress
from fish_contracts.reports import ProgressReport

_WIDTH: Final = 30
_REDRAW_INTERVAL_S: Final = 0.25


def draw_in_background(progress: Progress) -> None:
    """Redraw the line until the process ends. Plain text and no cursor tricks, so that ending at any instant leaves no mess."""
    started_at_s = time.monotonic()

    def draw_forever() -> None:
        while True:
            line = line_of(progress.report(), elapsed_s=time.monotonic() - started_at_s)
            print(f"\r{line}\x1b[K", end="", file=sys.stderr, flush=True)
            time.sleep(_REDRAW_INTERVAL_S)

    threading.Thread(target=draw_forever, name="progress-bar", daemon=True).start()


def line_of(report: ProgressReport, *, elapsed_s: float) -> str:
    """Return the line for a state of the job."""
    finished = report.items_committed + report.items_rejected
    share = finished / max(1, report.items_total)
    bar = "#" * round(share * _WIDTH)
    speed = report.audio_s / max(1e-9, elapsed_s)
    return (
        f"[{bar:.<{_WIDTH}}] {share:4.0%}  {finished}/{report.items_total} recordings, {report.items_rejected} rejected, "
        f"{speed:.0f}x real time"
    )
