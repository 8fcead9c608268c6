"""How the command line ends when something we know of went wrong."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console

from fish_local.errors import LocalError


@contextmanager
def explained() -> Iterator[None]:
    """Turn what we know can go wrong into a message and exit status 1; the rest is a fault of ours and shows itself."""
    try:
        yield
    except (LocalError, OSError, ValueError) as error:
        Console(stderr=True).print(
            f"fish-local: {_sentence(error)}", style="red", highlight=False, markup=False, soft_wrap=True
        )
        raise typer.Exit(1) from error


def _sentence(error: Exception) -> str:
    """Return what went wrong; of a refused file the name and the system's reason, without its number."""
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error)
