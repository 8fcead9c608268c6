"""How long work is shown to people: a bar on a terminal, a line now and then anywhere else."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn


class Narrator(Protocol):
    """Whom the parts of a long command tell what they do."""

    def say(self, text: str) -> None:
        """Show a line."""

    def advance(self, work: str, done: int, total: int) -> None:
        """Show how far some work is; it is over when `done` is `total`."""


class LineNarrator:
    """Prints a line for each tenth of a work."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._tenths: dict[str, int] = {}

    def say(self, text: str) -> None:
        """Print a line."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def advance(self, work: str, done: int, total: int) -> None:
        """Print a line when another tenth is done."""
        tenth = 10 * done // total
        if tenth > self._tenths.get(work, -1):
            self._tenths[work] = tenth
            self.say(f"{work}: {done} of {total}")


class BarNarrator:
    """Draws a bar for each work, below the lines."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._bars: dict[str, TaskID] = {}

    def say(self, text: str) -> None:
        """Print a line above the bars."""
        self._progress.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def advance(self, work: str, done: int, total: int) -> None:
        """Move the bar of this work, or begin it."""
        if work not in self._bars:
            self._bars[work] = self._progress.add_task(work, total=total)
        self._progress.update(self._bars[work], completed=done, total=total)


@contextmanager
def narrator(console: Console) -> Iterator[Narrator]:
    """Give what suits the console."""
    if not console.is_terminal:
        yield LineNarrator(console)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        yield BarNarrator(progress)
