"""How far the job has come, read from the commits by whoever asks."""

import threading
import time
from typing import Final

from fish_cleaning.commits import CommitLog
from fish_cleaning.plan import Plan
from fish_cleaning.store import Store
from fish_cleaning.tally import Tally
from fish_contracts.reports import ProgressReport

_REFRESH_INTERVAL_S: Final = 0.25


class Progress:
    """Answers for the whole job and for this worker. It has its own view of the commits, so the loop waits for nobody."""

    def __init__(self, store: Store, plan: Plan, tally: Tally) -> None:
        self._plan, self._tally = plan, tally
        self._commits = CommitLog(store, plan.units)
        self._lock = threading.Lock()
        self._refreshed_at_s = float("-inf")

    def report(self) -> ProgressReport:
        """Return the state of now, a quarter of a second old at most."""
        now_s = time.monotonic()
        with self._lock:
            if now_s - self._refreshed_at_s >= _REFRESH_INTERVAL_S:
                self._commits.refresh()
                self._refreshed_at_s = now_s
            commits = list(self._commits.commits.values())
        return ProgressReport(
            units_total=len(self._plan.units),
            units_committed=len(commits),
            items_total=self._plan.items_total,
            items_committed=sum(len(commit.committed) for commit in commits),
            items_rejected=sum(len(commit.rejected) for commit in commits),
            audio_s=round(self._tally.audio_s, 3),
            work_at_risk_s=round(self._tally.work_at_risk_s(now_s=now_s), 3),
        )
