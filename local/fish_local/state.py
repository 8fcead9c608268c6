"""What a state folder remembers of its cluster, and what that means now.

The record is written before the first process starts and after each, so that a killed `up` leaves no process that nobody
knows of. `assess` is pure: what is written, which boot this is, and who is alive go in.
"""

import fcntl
import os
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from fish_local.errors import BadRecord, StateBusy
from fish_local.network import Network
from fish_local.processes import ProcessId
from fish_local.shape import CONTROL_PLANE, Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRecord:
    """A cluster as the last command left it. `is_complete` is false while `up` is at work, or was when it was killed."""

    boot_id: str
    is_complete: bool
    shape: Shape
    network: Network
    binary: str
    token: str
    processes: Mapping[str, ProcessId] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """No cluster was ever started here, or it was stopped in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """Every component is alive."""

    record: ClusterRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Wounded:
    """Some components have died; the database is there, so they can be started again."""

    record: ClusterRecord
    dead: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stale:
    """What is left of a cluster cannot go on; `reason` tells people why."""

    record: ClusterRecord
    reason: str


Verdict = Absent | Running | Wounded | Stale

_RECORD: Final = TypeAdapter(ClusterRecord)


def assess(record: ClusterRecord | None, *, boot_id: str, alive: Set[str]) -> Verdict:
    """Tell what a state folder holds. `alive` names the components whose process still runs."""
    if record is None:
        return Absent()
    if record.boot_id != boot_id:
        return Stale(record=record, reason="the machine was restarted since its cluster was started")
    if not record.is_complete:
        return Stale(record=record, reason="an `up` was stopped half-way")
    dead = tuple(name for name in record.shape.component_names if name not in alive)
    if not dead:
        return Running(record=record)
    if alive & set(CONTROL_PLANE):
        return Wounded(record=record, dead=dead)
    return Stale(record=record, reason="the processes of its control plane were killed")


def read(path: Path) -> ClusterRecord | None:
    """Return the record in this file, None when there is none.

    Raises:
        BadRecord: the file is not such a record.
    """
    try:
        text = path.read_text()
    except FileNotFoundError:
        return None
    try:
        return _RECORD.validate_json(text)
    except ValidationError as error:
        raise BadRecord(
            f"{path} is not the record of a cluster: {error}; if nothing of it runs any more, delete {path.parent}"
        ) from error


def write(path: Path, record: ClusterRecord) -> None:
    """Replace the record in one step; it holds the administrator's token, so only the owner may read it."""
    draft = path.with_suffix(".draft")
    draft.touch(mode=0o600)
    draft.write_bytes(_RECORD.dump_json(record, indent=1))
    draft.replace(path)


@contextmanager
def exclusive(lock: Path) -> Iterator[None]:
    """Keep other commands out of the state folder.

    Raises:
        StateBusy: another command is in it; the message has its process id.
    """
    lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with lock.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise StateBusy(
                f"process {file.read().strip() or '?'} is starting or stopping the cluster in {lock.parent}; "
                f"wait for it to end"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
