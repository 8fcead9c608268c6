"""Shards: tar files that WebDataset reads. The same results give the same bytes, so a shard is named by its hash."""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass

from fish_cleaning.clip import Cleaned


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """Where a file of the shard lies: its bytes are shard[offset : offset + size]."""

    name: str
    offset: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """A finished shard."""

    tar: bytes
    sha256: str
    members: tuple[Member, ...]

    def index_json(self) -> bytes:
        """Write the byte index, with which a reader fetches one recording without reading the rest."""
        members = {member.name: [member.offset, member.size] for member in self.members}
        return json.dumps({"sha256": self.sha256, "members": members}).encode()


def build_shard(results: Mapping[str, Cleaned]) -> Shard:
    """Write the results in order of their item ids; headers hold no time, user or host."""
    target = io.BytesIO()
    members = []
    with tarfile.open(fileobj=target, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for item_id in sorted(results):
            for suffix, data in (("flac", results[item_id].flac), ("json", results[item_id].metadata_json.encode())):
                header = tarfile.TarInfo(f"{item_id}.{suffix}")
                header.size, header.mode = len(data), 0o644
                # The data starts one header block after where the header goes.
                members.append(Member(name=header.name, offset=target.tell() + tarfile.BLOCKSIZE, size=len(data)))
                tar.addfile(header, io.BytesIO(data))
    content = target.getvalue()
    return Shard(tar=content, sha256=hashlib.sha256(content).hexdigest(), members=tuple(members))
