"""What a user may write where an input or an output is asked for, and what is then opened."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from fish_cleaning.errors import BadInput
from fish_cleaning.source import AudioFolder, Source
from fish_cleaning.store import LocalStore, Store

if TYPE_CHECKING:
    from fish_cleaning.object_storage import Bucket

_S3: Final = "s3://"
_ENDPOINT_VARIABLES: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")


def open_source(location: str) -> Source:
    """Return the recordings in a folder or a bucket."""
    if location.startswith(_S3):
        from fish_cleaning.s3_source import AudioBucket  # noqa: PLC0415 - object storage costs 0.1 s at start

        return AudioBucket(_bucket_of(location))
    return AudioFolder(folder_of(location))


def open_store(location: str) -> Store:
    """Return the output in a folder or a bucket."""
    if location.startswith(_S3):
        from fish_cleaning.s3_store import S3Store  # noqa: PLC0415

        return S3Store(_bucket_of(location))
    return LocalStore(folder_of(location))


def folder_of(location: str) -> Path:
    """Return the absolute path of a folder given as a path or as a file:// URI."""
    if not location:
        raise BadInput("location is empty; expected a folder, a file:// URI or s3://bucket/prefix")
    if "://" not in location:
        return Path(location).absolute()
    parts = urlsplit(location)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        wanted = "expected a folder, a file:// URI such as file:///data/speech, or s3://bucket/prefix"
        raise BadInput(f"location {location}: {wanted}")
    return Path(unquote(parts.path))


def _bucket_of(location: str) -> "Bucket":
    """Connect to a bucket, and find out at once if it cannot be listed."""
    from fish_cleaning.object_storage import connect  # noqa: PLC0415

    bucket, _, prefix = location.removeprefix(_S3).partition("/")
    if not bucket:
        raise BadInput(f"location {location}: no bucket in it; expected s3://bucket/prefix")
    # Read here, because obstore does not check it, and because it does not know the first of these.
    endpoint = next((os.environ[name] for name in _ENDPOINT_VARIABLES if os.environ.get(name)), None)
    connected = connect(bucket, prefix.strip("/"), endpoint=endpoint)
    connected.folder("")
    return connected
