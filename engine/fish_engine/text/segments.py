"""A long text in parts that the model can say well, and text that arrives in pieces, as it becomes sayable."""

from collections.abc import Iterator, Sequence
from typing import Final

from fish_engine.text.breaks import SPEAKER_TAG, Atom, Break, atoms

_LEAST_SHARE: Final = 4
"""A part has at least a quarter of its limit: a short sentence is not worth a part of its own, and each cut makes headway."""


class Segmenter:
    """Cuts one text, given at once or piece by piece. Put together, the parts are the text, but for spaces at their ends.

    A part that goes on with the words of a speaker starts with the speaker's tag again.
    """

    def __init__(self, *, limit_chars: int) -> None:
        self._limit_chars = limit_chars
        self._rest = ""
        self._speaker = ""

    @property
    def pending_chars(self) -> int:
        """Characters that are in no part yet."""
        return len(self._rest)

    def add(self, text: str) -> list[str]:
        """Return the parts that this text completes."""
        *parts, self._rest = _packed(self._rest + text, self._limit_chars)
        return self._told(parts)

    def sentences(self) -> list[str]:
        """Return the sentences that are complete, although more would fit into a part."""
        known = list(atoms(self._rest))[:-1]  # what comes next may still change how the last one ends
        count = max((index for index, atom in enumerate(known, 1) if atom.after is Break.SENTENCE), default=0)
        ready = "".join(atom.text for atom in known[:count])
        self._rest = self._rest[len(ready) :]
        return self._told([ready])

    def flush(self) -> list[str]:
        """Return what is left."""
        rest, self._rest = self._rest, ""
        return self._told([rest])

    def _told(self, parts: Sequence[str]) -> list[str]:
        """Return the parts with their speakers, without those that are empty."""
        told = []
        for part in parts:
            stripped = part.strip()
            if not stripped:
                continue
            told.append(stripped if SPEAKER_TAG.match(stripped) else self._speaker + stripped)
            if tags := SPEAKER_TAG.findall(stripped):
                self._speaker = tags[-1]
        return told


def _packed(text: str, limit_chars: int) -> Iterator[str]:
    """Yield parts of at most `limit_chars`, longer only where an atom is; the last one is what is left."""
    pending: list[Atom] = []
    length = 0
    for atom in atoms(text):
        pending.append(atom)
        length += len(atom.text)
        while length > limit_chars and len(pending) > 1:
            count = _cut(pending, limit_chars)
            part = "".join(each.text for each in pending[:count])
            yield part
            del pending[:count]
            length -= len(part)
    yield "".join(atom.text for atom in pending)


def _cut(pending: Sequence[Atom], limit_chars: int) -> int:
    """Return how many atoms to take: up to the best break, of equal ones the last."""
    best, best_count, length = Break.NEVER, 1, 0
    for count, atom in enumerate(pending[:-1], 1):
        length += len(atom.text)
        if length > limit_chars:
            break
        if atom.after >= best and (length * _LEAST_SHARE >= limit_chars or best is Break.NEVER):
            best, best_count = atom.after, count
    return best_count
