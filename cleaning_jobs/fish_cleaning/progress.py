"""How far the job has come, read from the commits by whoever asks."""

import threading
import time
from typing import Final

from fish_cleaning.commits import CommitLog
from fish_cleaning.errors import CleaningError
from fish_cleaning.events import log_event
from fish_cleaning.plan import Plan
from fish_cleaning.store import Store
from fish_cleaning.tally import Tally
from fish_contracts.reports import ProgressReport

_REFRESH_INTERVAL_S: Final = 0.25
_LONGEST_WAIT_S: Final = 0.5


class Progress:
    """Answers for the whole job and for this worker. It has its own view of the commits, so the loop waits for nobody.

    Nor does who asks wait long: while the storage is silent, the answer is what was seen last.
    """

    def __init__(self, store: Store, plan: Plan, tally: Tally) -> None:
        self._plan, self._tally = plan, tally
        self._commits = CommitLog(store, plan.units)
        self._is_refreshing = threading.Lock()
        self._refreshed_at_s = float("-inf")

    def report(self) -> ProgressReport:
        """Return the state of now, a quarter of a second old where the storage answers."""
        now_s = time.monotonic()
        if now_s - self._refreshed_at_s >= _REFRESH_INTERVAL_S and self._is_refreshing.acquire(blocking=False):
            refreshing = threading.Thread(target=self._refresh, name="progress", daemon=True)
            refreshing.start()
            refreshing.join(_LONGEST_WAIT_S)
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

    def _refresh(self) -> None:
        try:
            self._commits.refresh()
        except CleaningError as error:
            log_event("could not read the progress", error=str(error))
        finally:
            self._refreshed_at_s = time.monotonic()
            self._is_refreshing.release()
