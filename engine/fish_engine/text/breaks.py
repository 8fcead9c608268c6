"""Where a text may be cut, and how well: at the end of a sentence, of a clause, of a word, or between two characters.

Never inside a number, a tag, a cue or what a reader sees as one character. Languages that write without spaces are cut after
marks of their own.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import regex

SPEAKER_TAG: Final = regex.compile(r"<\|speaker:\d{1,4}\|>")
_ATOM: Final = regex.compile(
    r"""(?: (?P<speaker> <\|speaker:\d{1,4}\|> )
          | (?P<tag> <\|phoneme_start\|>.{0,200}?<\|phoneme_end\|> | <\|[a-z_]{1,20}\|> | \[[^\[\]]{1,200}\] )
          | (?P<number> \p{Nd}{1,40}+ (?: [.,:/\x20\xa0\u202f'’-] \p{Nd}{1,40}+ ){0,12}+ )
          | (?P<end> [.!?…‽。！？｡．؟۔।॥։።፧།។᠃]{1,20}+ [\p{Pe}\p{Pf}"']{0,5}+ )
          | (?P<clause> [,;:—–、，；：،؛፣]{1,20}+ [\p{Pe}\p{Pf}"']{0,5}+ )
          | (?P<other> \p{L}{1,16}+ (?! [\p{M}\u200d\u1160-\u11ff] ) | \X ) )
        (?P<gap> \s*+ )""",
    regex.VERBOSE | regex.DOTALL,
)
_SPACELESS: Final = frozenset("。！？｡．།、，；：")
"""Marks that no space follows."""
_ABBREVIATIONS: Final = frozenset(
    ("mr", "mrs", "ms", "dr", "prof", "st", "jr", "sr", "vs", "no", "nr", "fig", "vol", "pp", "ca", "bzw", "sra", "mme")
)


class Break(IntEnum):
    """How good a place is to cut; the larger the better."""

    NEVER = 0
    CHARACTER = 1
    WORD = 2
    CLAUSE = 3
    SENTENCE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Atom:
    """What is never cut, with the space that follows it, and how good it is to cut after it."""

    text: str
    after: Break


def atoms(text: str) -> Iterator[Atom]:
    """Yield the whole text in pieces that are never cut. Takes time in proportion to its length."""
    word = ""  # what stands before, if nothing is between
    for match in _ATOM.finditer(text):
        kind, core = next((name, piece) for name, piece in match.groupdict().items() if piece is not None)
        gap = match["gap"]
        rest = text[match.end() : match.end() + 12]
        yield Atom(text=match.group(), after=_break_after(kind, core, gap, word=word, rest=rest))
        word = core if kind == "other" and not gap else ""


def _break_after(kind: str, core: str, gap: str, *, word: str, rest: str) -> Break:
    if kind == "speaker":
        return Break.NEVER
    if rest.startswith("<|speaker:") or "\n" in gap:
        return Break.SENTENCE
    is_apart = bool(gap) or not rest or core[0] in _SPACELESS
    match kind:
        case "end" if is_apart:
            return Break.WORD if _goes_on(core, word, rest) else Break.SENTENCE
        case "clause" if is_apart:
            return Break.CLAUSE
        case _:
            return Break.WORD if gap else Break.CHARACTER


def _goes_on(core: str, word: str, rest: str) -> bool:
    """Tell whether a full stop stands for something left out: "Dr. Who", "J. Bach", "e.g. this"."""
    return core == "." and (len(word) == 1 or word.lower() in _ABBREVIATIONS or rest[:1].islower())
