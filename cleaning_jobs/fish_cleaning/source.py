"""The input: recordings, in a folder or wherever else they can be listed and read. It is only ever read."""

import errno
import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn, Protocol

from fish_cleaning.clip import Item, Reason, Reject
from fish_cleaning.errors import BadInput

AUDIO_SUFFIXES: Final = frozenset({".aif", ".aiff", ".caf", ".flac", ".mp3", ".oga", ".ogg", ".opus", ".w64", ".wav"})
"""Other files are left alone: transcripts and notes lie beside recordings in most corpora."""


class Source(Protocol):
    """Where recordings come from."""

    @property
    def uri(self) -> str:
        """Name the place in the plan."""

    def items(self) -> list[Item]:
        """Return every recording as it is now."""

    def read(self, item: Item) -> bytes | Reject:
        """Return the bytes of a recording, if they are still those that were planned."""


def is_recording(name: str) -> bool:
    """Tell a recording from other files by the end of its name."""
    return Path(name).suffix.lower() in AUDIO_SUFFIXES


def identified(name: bytes, *, content: str) -> str:
    """Return the id of a recording: the same name and content have the same id everywhere."""
    return hashlib.sha256(name + b"\0" + content.encode()).hexdigest()[:20]


@dataclass(frozen=True, slots=True)
class AudioFolder:
    """A folder and everything below it. Symbolic links to folders are not followed, so there are no loops."""

    root: Path

    @property
    def uri(self) -> str:
        """Name the folder in the plan."""
        return self.root.as_uri()

    def names(self) -> list[str]:
        """Return the paths of all recordings relative to the folder, sorted.

        Names in no known encoding keep their bytes as surrogates, as everywhere in Python.
        """
        if not self.root.is_dir():
            raise BadInput(f"input {self.root}: no such folder")
        found = []
        for folder, _, files in os.walk(self.root, onerror=_refuse):
            relative = Path(folder).relative_to(self.root)
            found += [str(relative / file) for file in files if is_recording(file)]
        return sorted(found)

    def items(self) -> list[Item]:
        """Return every recording with the hash of what it holds now."""
        return [self._item(name) for name in self.names()]

    def read(self, item: Item) -> bytes | Reject:
        """Return the bytes of a recording, if they are still those that were planned."""
        try:
            recording = self._file(item.name).read_bytes()
        except OSError as error:
            return Reject(reason=Reason.UNREADABLE, detail=error.strerror or type(error).__name__)
        if hashlib.sha256(recording).hexdigest() != item.content:
            return Reject(reason=Reason.CHANGED, detail=f"{len(recording)} bytes, planned with {item.size_bytes}")
        return recording

    def _file(self, name: str) -> Path:
        """Return where a recording lies; raise OSError for a pipe or a device, whose reader could wait for ever."""
        path = self.root / name
        if not stat.S_ISREG(path.stat().st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return path

    def _item(self, name: str) -> Item:
        try:
            with self._file(name).open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
                size_bytes = file.tell()
        except OSError:
            content, size_bytes = "", 0  # rejected when its turn comes, with the reason of that moment
        identity = identified(os.fsencode(name), content=content)
        return Item(id=identity, name=name, content=content, size_bytes=size_bytes)


def _refuse(error: OSError) -> NoReturn:
    """Stop at a folder that cannot be listed: what is in it would be missing from the output without a word."""
    raise BadInput(f"input {error.filename}: {error.strerror}; expected folders that this user may list") from error
