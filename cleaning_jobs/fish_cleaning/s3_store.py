"""The output in a bucket of an S3-compatible server that knows conditional writes (If-None-Match, If-Match)."""

from collections.abc import Iterable

from fish_cleaning.object_storage import Bucket
from fish_cleaning.store import AppendOnly, Written


class S3Store:
    """Blobs are objects. A file that grows is a row of numbered objects, because objects do not grow."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    def get(self, key: str) -> bytes | None:
        """Return a blob, or None where there is none."""
        blob = self._bucket.get(key)
        return None if blob is None else blob.data

    def names(self, folder: str) -> list[str]:
        """Return the names of the blobs directly below `folder`, sorted."""
        return self._bucket.folder(folder)

    def create(self, key: str, data: bytes) -> bool:
        """Put a blob where none is: the server refuses the second of two, however close they come."""
        return self._bucket.create(key, data)

    def keep(self, key: str, data: bytes) -> None:
        """Put a blob whose name follows from its content: writing it again mends it at worst."""
        self._bucket.put_checked(key, data)

    def swap(self, key: str, data: bytes, *, expected: bytes | None) -> bool:
        """Put a blob in place of that one: the server refuses if it has another version by then."""
        if expected is None:
            return self._bucket.create(key, data)
        blob = self._bucket.get(key)
        return blob is not None and blob.data == expected and self._bucket.swap(key, data, e_tag=blob.e_tag)

    def replace(self, key: str, data: bytes) -> None:
        """Put a blob whether or not one is there."""
        self._bucket.put(key, data)

    def appendable(self, key: str) -> AppendOnly:
        """Open a new file that only its one writer appends to."""
        return _NumberedObjects(self._bucket, key)

    def appended(self, key: str) -> bytes:
        """Return what was appended to a file. Each object was put after the one before it, so there are no gaps."""
        parts = self._bucket.get_all(f"{key}/{name}" for name in self._bucket.folder(key))
        return b"".join(part.data for part in parts if part is not None)

    def written(self) -> dict[str, Written]:
        """Return all objects."""
        return {
            found.key: Written(at_s=found.written_at_s, size_bytes=found.size_bytes) for found in self._bucket.walk()
        }

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects."""
        self._bucket.delete_all(keys)

    def hasten(self) -> None:
        """Wait for the network only for a moment from now on."""
        self._bucket.hasten()


class _NumberedObjects:
    outlives_writer = False  # until it is put, it is in the memory of this process

    def __init__(self, bucket: Bucket, key: str) -> None:
        self._bucket, self._key = bucket, key
        self._number = 0
        self._waiting: list[bytes] = []

    def append(self, data: bytes) -> None:
        self._waiting.append(data)

    def sync(self) -> None:
        """Put what waits. A stop signal may interrupt this and call it again: that puts the same object once more."""
        if self._waiting:
            self._bucket.put(f"{self._key}/{self._number:08d}", b"".join(self._waiting))
            self._waiting = []
            self._number += 1

    def close(self) -> None:
        pass
