"""What happened to each item of a unit, written as it happens.

A journal belongs to one epoch of one lease and has one writer. It is a row of frames,

    length (4 bytes) | crc32 of the payload (4 bytes) | payload: one line of JSON, then the audio

and whatever follows the last whole frame was torn by a crash and never happened.
"""

import json
import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from fish_cleaning.clip import Cleaned, Reason, Reject
from fish_cleaning.store import AppendOnly

JOURNALS: Final = "journals"

_HEADER: Final = struct.Struct(">II")
_SYNC_ENTRIES: Final = 64
_SYNC_INTERVAL_S: Final = 0.25


def journal_key(unit: str, epoch: int) -> str:
    """Name the journal of a unit's epoch in the store."""
    return f"{JOURNALS}/{unit}.{epoch}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempted:
    """Work on the item began. Without a later `Finished`, it ended there."""

    item_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The item has its result."""

    item_id: str
    result: Cleaned | Reject


Entry = Attempted | Finished


def to_frame(entry: Entry) -> bytes:
    """Write one entry."""
    audio = b""
    match entry:
        case Attempted():
            head: dict[str, object] = {"item": entry.item_id}
        case Finished(result=Reject() as reject):
            head = {
                "item": entry.item_id,
                "reject": reject.reason,
                "detail": reject.detail,
                "duration_s": reject.duration_s,
            }
        case Finished(result=Cleaned() as cleaned):
            head = {"item": entry.item_id, "metadata": cleaned.metadata_json, "duration_s": cleaned.duration_s}
            audio = cleaned.flac
    payload = json.dumps(head).encode() + b"\n" + audio
    return _HEADER.pack(len(payload), zlib.crc32(payload)) + payload


def entries_of(journal: bytes) -> list[Entry]:
    """Read all whole frames; a torn tail is dropped."""
    entries: list[Entry] = []
    position = 0
    while position + _HEADER.size <= len(journal):
        length, checksum = _HEADER.unpack_from(journal, position)
        payload = journal[position + _HEADER.size : position + _HEADER.size + length]
        # An empty payload has the checksum zero, as has a hole that a power cut left in the file.
        if not payload or len(payload) < length or zlib.crc32(payload) != checksum:
            break
        entries.append(_entry(payload))
        position += _HEADER.size + length
    return entries


def _entry(payload: bytes) -> Entry:
    line, _, audio = payload.partition(b"\n")
    head = json.loads(line)
    if "reject" in head:
        reject = Reject(reason=Reason(head["reject"]), detail=head["detail"], duration_s=head["duration_s"])
        return Finished(item_id=head["item"], result=reject)
    if "metadata" in head:
        cleaned = Cleaned(metadata_json=head["metadata"], flac=audio, duration_s=head["duration_s"])
        return Finished(item_id=head["item"], result=cleaned)
    return Attempted(item_id=head["item"])


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What earlier epochs left: results to keep, and how often work on an item began and never ended."""

    results: Mapping[str, Cleaned | Reject]
    broken_attempts: Mapping[str, int]


def history_of(journals: Iterable[bytes]) -> History:
    """Merge the journals of all earlier epochs, oldest first; the first result of an item counts."""
    results: dict[str, Cleaned | Reject] = {}
    broken: dict[str, int] = {}
    for journal in journals:
        open_item = ""
        for entry in entries_of(journal):
            match entry:
                case Attempted():
                    open_item = entry.item_id
                case Finished():
                    results.setdefault(entry.item_id, entry.result)
                    open_item = ""
        if open_item:
            broken[open_item] = broken.get(open_item, 0) + 1
    return History(results=results, broken_attempts=broken)


class JournalWriter:
    """Appends entries and decides when they are made durable: every 64 entries or 250 ms, whichever comes first.

    Where a killed process takes along what it had not synced, each attempt is synced before the work begins: otherwise a
    recording that kills its worker would leave no trace, and kill the next one.
    """

    def __init__(self, file: AppendOnly, *, now_s: float) -> None:
        self._file = file
        self._entries_at_risk = 0
        self._synced_at_s = now_s

    def append(self, entry: Entry, *, now_s: float) -> None:
        """Write one entry, and make it durable if that is due."""
        self._file.append(to_frame(entry))
        self._entries_at_risk += 1
        is_due = self._entries_at_risk >= _SYNC_ENTRIES or now_s - self._synced_at_s >= _SYNC_INTERVAL_S
        if is_due or (isinstance(entry, Attempted) and not self._file.outlives_writer):
            self.sync(now_s=now_s)

    def sync(self, *, now_s: float) -> None:
        """Make everything written so far durable."""
        self._file.sync()
        self._entries_at_risk = 0
        self._synced_at_s = now_s

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    @property
    def is_synced(self) -> bool:
        """Tell whether a power cut now would lose nothing."""
        return self._entries_at_risk == 0
