"""Where the output lives. What the protocol needs of it is little, so that object storage can offer the same."""

import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from fish_cleaning.errors import BadInput, StoreFailed

_TEMPORARY: Final = ".tmp"
_LOCK: Final = ".lock"
_UNUSABLE: Final = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENOENT)


class AppendOnly(Protocol):
    """A file that grows at its end."""

    @property
    def outlives_writer(self) -> bool:
        """Tell whether what was appended and not synced is still there when this process was killed."""

    def append(self, data: bytes) -> None:
        """Write at the end."""

    def sync(self) -> None:
        """Return once everything written so far would survive a power cut."""

    def close(self) -> None:
        """Let go of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """When a blob was last written, by the storage's own clock, and how big it is."""

    at_s: float
    size_bytes: int


class Store(Protocol):
    """Named blobs. A blob is there whole or not at all."""

    def get(self, key: str) -> bytes | None:
        """Return a blob, or None where there is none."""

    def names(self, folder: str) -> list[str]:
        """Return the names of the blobs directly below `folder`, sorted."""

    def create(self, key: str, data: bytes) -> bool:
        """Put a blob where none is, durably. Return False, and change nothing, where one is already."""

    def keep(self, key: str, data: bytes) -> None:
        """Put a blob whose name follows from its content, durably; whoever else puts it puts the same."""

    def swap(self, key: str, data: bytes, *, expected: bytes | None) -> bool:
        """Put a blob in place of that one, or of none, durably. Return False, and change nothing, if it is not what is there.

        False, too, when somebody else is about to: whoever was frozen in the middle of this must keep nobody waiting.
        """

    def replace(self, key: str, data: bytes) -> None:
        """Put a blob whether or not one is there. A power cut may undo or garble it, but not its name."""

    def appendable(self, key: str) -> AppendOnly:
        """Open a new file that only its one writer appends to."""

    def appended(self, key: str) -> bytes:
        """Return what was appended to a file, as far as it can be seen; nothing where there is none."""

    def written(self) -> dict[str, Written]:
        """Return all blobs, files that grow with their parts, and what writers that died have left beside them."""

    def delete(self, keys: Iterable[str]) -> None:
        """Delete blobs; those that are gone already are no error."""

    def hasten(self) -> None:
        """Wait for no network any more, or only for a moment: the process is leaving."""


class LocalStore:
    """A folder on a POSIX file system that has hard links; the file system may be shared between machines."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def get(self, key: str) -> bytes | None:
        """Return a blob, or None where there is none."""
        path = self.root / key
        with _explained(path):
            try:
                return path.read_bytes()
            except FileNotFoundError:
                return None

    def names(self, folder: str) -> list[str]:
        """Return the names of the blobs directly below `folder`, sorted."""
        path = self.root / folder
        with _explained(path):
            try:
                return sorted(entry.name for entry in path.iterdir())
            except FileNotFoundError:
                return []

    def create(self, key: str, data: bytes) -> bool:
        """Put a blob where none is: link(2) fails where the name exists, on every POSIX file system, NFS included."""
        with self._staged(key, data, durable=True) as (staged, target):
            try:
                os.link(staged, target)
            except FileExistsError:
                return False
            _sync_folder(target.parent)
        return True

    def keep(self, key: str, data: bytes) -> None:
        """Put a blob whose name follows from its content."""
        self.create(key, data)

    def swap(self, key: str, data: bytes, *, expected: bytes | None) -> bool:
        """Put a blob in place of that one, under a lock that a killed process gives back."""
        with self._staged(key, data, durable=True) as (staged, target), _lock(self.root / _LOCK) as is_held:
            if not is_held or self.get(key) != expected:
                return False
            staged.replace(target)
            _sync_folder(target.parent)
        return True

    def replace(self, key: str, data: bytes) -> None:
        """Put a blob whether or not one is there."""
        with self._staged(key, data, durable=False) as (staged, target):
            staged.replace(target)

    def appendable(self, key: str) -> AppendOnly:
        """Open a new file that only its one writer appends to."""
        path = self.root / key
        with _explained(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
            _sync_folder(path.parent)
        return _LocalFile(path, descriptor)

    def appended(self, key: str) -> bytes:
        """Return what was appended to a file."""
        return self.get(key) or b""

    def written(self) -> dict[str, Written]:
        """Return all files below the folder."""
        found = {}
        with _explained(self.root):
            for path in self.root.rglob("*"):
                with suppress(FileNotFoundError):  # a staged file that is in its place by now
                    status = path.stat()
                    if stat.S_ISREG(status.st_mode):
                        key = path.relative_to(self.root).as_posix()
                        found[key] = Written(at_s=status.st_mtime, size_bytes=status.st_size)
        return found

    def delete(self, keys: Iterable[str]) -> None:
        """Delete files."""
        for key in keys:
            with _explained(self.root / key):
                (self.root / key).unlink(missing_ok=True)

    def hasten(self) -> None:
        """Do nothing: what a folder owes before leaving takes milliseconds."""

    @contextmanager
    def _staged(self, key: str, data: bytes, *, durable: bool) -> Iterator[tuple[Path, Path]]:
        """Write the data beside its place, under a name that no listing shows."""
        target, folder = self.root / key, self.root / _TEMPORARY
        staged = folder / secrets.token_hex(8)
        with _explained(target):
            folder.mkdir(parents=True, exist_ok=True)
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                with staged.open("xb") as file:
                    file.write(data)
                    if durable:
                        file.flush()
                        os.fsync(file.fileno())
                yield staged, target
            finally:
                staged.unlink(missing_ok=True)


class _LocalFile:
    outlives_writer = True  # the kernel has it

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path, self._descriptor = path, descriptor

    def append(self, data: bytes) -> None:
        with _explained(self._path):
            written = 0
            while written < len(data):
                written += os.write(self._descriptor, data[written:])

    def sync(self) -> None:
        with _explained(self._path):
            os.fdatasync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


def _sync_folder(folder: Path) -> None:
    """Make new names in the folder survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _lock(path: Path) -> Iterator[bool]:
    """Try to be the only one in here; tell whether that is so."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(descriptor)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _UNUSABLE:
            raise BadInput(
                f"output {path}: {error.strerror}; expected a folder that this user may read and write"
            ) from error
        raise StoreFailed(
            f"output {path}: {error.strerror}; everything committed so far is safe, start again to continue"
        ) from error
