"""What a user may write where an input or an output is asked for."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from fish_cleaning.errors import BadInput


def folder_of(location: str) -> Path:
    """Return the absolute path of a folder given as a path or as a file:// URI."""
    if not location:
        raise BadInput("location is empty; expected a folder or a file:// URI")
    if "://" not in location:
        return Path(location).absolute()
    parts = urlsplit(location)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        raise BadInput(f"location {location}: expected a folder or a file:// URI such as file:///data/speech")
    return Path(unquote(parts.path))
