"""Recordings in a bucket: listed and not read when they are planned, refused when they changed since."""

import obstore
import pytest
from obstore.store import MemoryStore

from fish_cleaning.clip import Reason, Reject
from fish_cleaning.object_storage import Bucket
from fish_cleaning.s3_source import AudioBucket


@pytest.fixture
def objects() -> MemoryStore:
    """Return a bucket with two recordings and a note."""
    objects = MemoryStore()
    for name in ("b/two.FLAC", "a/one.wav", "a/notes.txt"):
        obstore.put(objects, name, name.encode())
    return objects


@pytest.fixture
def source(objects: MemoryStore) -> AudioBucket:
    """Return the bucket as an input."""
    return AudioBucket(Bucket(objects, uri="s3://memory"))


def test_recordings_are_found_at_any_depth_and_other_objects_are_not(source: AudioBucket) -> None:
    assert [item.name for item in source.items()] == ["a/one.wav", "b/two.FLAC"]
    assert source.uri == "s3://memory"


def test_a_recording_is_read_as_it_was_planned(source: AudioBucket) -> None:
    assert [source.read(item) for item in source.items()] == [b"a/one.wav", b"b/two.FLAC"]


def test_the_same_content_under_the_same_name_keeps_its_id(source: AudioBucket) -> None:
    assert [item.id for item in source.items()] == [item.id for item in source.items()]


def test_a_recording_that_changed_since_the_plan_is_rejected(source: AudioBucket, objects: MemoryStore) -> None:
    item = source.items()[0]
    obstore.put(objects, item.name, b"something else")
    assert source.read(item) == Reject(reason=Reason.CHANGED, detail="14 bytes, planned with 9")
    assert source.items()[0].id != item.id


def test_a_recording_that_is_gone_is_rejected(source: AudioBucket, objects: MemoryStore) -> None:
    item = source.items()[0]
    obstore.delete(objects, item.name)
    assert source.read(item) == Reject(reason=Reason.UNREADABLE, detail="no such object any more")
