"""Which statuses are written now: changes of substance at once, numbers that always move at a pace. Pure but for its memory."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from fish_operator.plan import StatusAction, WriteDeploymentStatus
from fish_operator.status import Condition, DeploymentStatus, Items, JobStatus, Units
from fish_operator.view import ObjectKey

WRITES_PER_S: Final = 2.0
"""Budget of all resources together for numbers that move all the time."""
SHORTEST_S: Final = 1.0


class StatusPace:
    """Remembers when each status was last written."""

    def __init__(self) -> None:
        self._written_at_s: dict[tuple[bool, ObjectKey], float] = {}

    def due(self, actions: Sequence[StatusAction], *, at_s: float) -> list[StatusAction]:
        """Return the writes to do now, and count them as done."""
        pause_s = max(SHORTEST_S, len(actions) / WRITES_PER_S)
        due = [action for action in actions if self._is_due(action, at_s=at_s, pause_s=pause_s)]
        known = {_key(action): self._written_at_s.get(_key(action)) for action in actions}
        self._written_at_s = {key: written_s for key, written_s in known.items() if written_s is not None}
        self._written_at_s |= {_key(action): at_s for action in due}
        return due

    def _is_due(self, action: StatusAction, *, at_s: float, pause_s: float) -> bool:
        if action.status == action.before:
            return False
        if _substance(action.status) != _substance(action.before):
            return True
        written_at_s = self._written_at_s.get(_key(action))
        return written_at_s is None or at_s - written_at_s >= pause_s


def _key(action: StatusAction) -> tuple[bool, ObjectKey]:
    return isinstance(action, WriteDeploymentStatus), action.key


def _substance(status: DeploymentStatus | JobStatus) -> DeploymentStatus | JobStatus:
    conditions = tuple(_wordless(condition) for condition in status.conditions)
    if isinstance(status, DeploymentStatus):
        return replace(status, load=None, conditions=conditions)
    return replace(status, percent=status.percent // 100, units=Units(), items=Items(), conditions=conditions)


def _wordless(condition: Condition) -> Condition:
    return replace(condition, message="")
