"""Shards: the same results, the same bytes, readable by others."""

import io
import json
import tarfile

from fish_cleaning.clip import Cleaned
from fish_cleaning.shards import build_shard

A = Cleaned(metadata_json='{"id": "a"}', flac=b"A" * 700, duration_s=1.0)
B = Cleaned(metadata_json='{"id": "b"}', flac=b"B", duration_s=1.0)


def test_the_order_of_work_does_not_show() -> None:
    assert build_shard({"a": A, "b": B}) == build_shard({"b": B, "a": A})


def test_a_shard_is_a_webdataset_tar_of_adjacent_pairs() -> None:
    shard = build_shard({"a": A, "b": B})
    with tarfile.open(fileobj=io.BytesIO(shard.tar)) as tar:
        members = tar.getmembers()
    assert [member.name for member in members] == ["a.flac", "a.json", "b.flac", "b.json"]
    assert {(member.mtime, member.uid, member.uname, member.mode) for member in members} == {(0, 0, "", 0o644)}


def test_the_index_finds_each_member_without_reading_the_tar() -> None:
    shard = build_shard({"a": A, "b": B})
    members = json.loads(shard.index_json())["members"]
    for name, expected in (("a.flac", A.flac), ("b.json", B.metadata_json.encode())):
        offset, size = members[name]
        assert shard.tar[offset : offset + size] == expected
