"""Recordings in a bucket."""

from dataclasses import dataclass

from fish_cleaning.clip import Item, Reason, Reject
from fish_cleaning.object_storage import Bucket, Listed
from fish_cleaning.source import identified, is_recording


@dataclass(frozen=True, slots=True)
class AudioBucket:
    """A bucket, or what lies under a prefix of it. Planning lists it and reads nothing: an object's ETag stands for its content."""

    bucket: Bucket

    @property
    def uri(self) -> str:
        """Name the place in the plan."""
        return self.bucket.uri

    def items(self) -> list[Item]:
        """Return every recording with the ETag that it has now, sorted by name."""
        return sorted(
            (_item(found) for found in self.bucket.walk() if is_recording(found.key)), key=lambda item: item.name
        )

    def read(self, item: Item) -> bytes | Reject:
        """Return the bytes of a recording, if they are still those that were planned."""
        blob = self.bucket.get(item.name)
        if blob is None:
            return Reject(reason=Reason.UNREADABLE, detail="no such object any more")
        if blob.e_tag != item.content:
            return Reject(reason=Reason.CHANGED, detail=f"{len(blob.data)} bytes, planned with {item.size_bytes}")
        return blob.data


def _item(found: Listed) -> Item:
    identity = identified(found.key.encode(), content=found.e_tag)
    return Item(id=identity, name=found.key, content=found.e_tag, size_bytes=found.size_bytes)
