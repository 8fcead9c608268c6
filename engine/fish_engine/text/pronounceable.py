"""Whether there is anything in a text that can be said."""

import re
from typing import Final

_MARKS: Final = re.compile(r"<\|(?:speaker:\d+|phoneme_start|phoneme_end)\|>")


def is_pronounceable(text: str) -> bool:
    """Tell whether the text has a letter or a digit of any script, outside of speaker tags and phoneme marks.

    Punctuation and emoji alone make a speech model babble.
    """
    return any(character.isalnum() for character in _MARKS.sub("", text))
