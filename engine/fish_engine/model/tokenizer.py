"""Text to token ids, with the special tokens looked up by name and those in user text taken as ordinary text."""

import re
from pathlib import Path
from typing import Final

from tokenizers import Tokenizer

from fish_engine.errors import BadCheckpoint
from fish_engine.model.config import DualARConfig

TOKENIZER_FILE: Final = "tokenizer.json"
_ALLOWED_IN_TEXT: Final = re.compile(r"<\|(?:speaker:\d+|phoneme_start|phoneme_end)\|>")


class TextTokenizer:
    """The tokenizer of one checkpoint.

    Two encoders share the vocabulary: one reads special tokens as such and serves our own prompt pieces; the other spells
    them out, and is used for the control tokens that a user wrote.
    """

    def __init__(self, path: Path, config: DualARConfig) -> None:
        self._encoder = _read(path)
        self._speller = _read(path)
        self._speller.encode_special_tokens = True
        self._path = path
        self.im_end_id = self._id("<|im_end|>")
        self._check_semantic_range(config)
        added = [token.content for token in self._encoder.get_added_tokens_decoder().values()]
        control = [re.escape(token) for token in added if not _ALLOWED_IN_TEXT.fullmatch(token)]
        self._control = re.compile("(" + "|".join(sorted(control, key=len, reverse=True)) + ")")

    def encode_piece(self, piece: str) -> list[int]:
        """Return the ids of a piece of prompt of our own, special tokens included."""
        ids: list[int] = self._encoder.encode(piece, add_special_tokens=False).ids
        return ids

    def encode_text(self, text: str) -> list[int]:
        """Return the ids of a user's text; speaker tags and phoneme marks stay, any other special token is spelled out."""
        ids: list[int] = []
        for index, part in enumerate(self._control.split(text)):
            encoder = self._speller if index % 2 else self._encoder
            ids += encoder.encode(part, add_special_tokens=False).ids
        return ids

    def _id(self, token: str) -> int:
        found: int | None = self._encoder.token_to_id(token)
        if found is None:
            raise BadCheckpoint(f"{self._path} has no token {token}")
        return found

    def _check_semantic_range(self, config: DualARConfig) -> None:
        begin, end = self._id("<|semantic:0|>"), self._id(f"<|semantic:{config.codebook_size - 1}|>")
        if (begin, end) != (config.semantic_begin_id, config.semantic_end_id):
            raise BadCheckpoint(
                f"{self._path} has <|semantic:0|> .. <|semantic:{config.codebook_size - 1}|> at {begin}..{end}, "
                f"but config.json says {config.semantic_begin_id}..{config.semantic_end_id}"
            )


def _read(path: Path) -> Tokenizer:
    if not path.exists():
        raise BadCheckpoint(f"{path} does not exist: the tokenizer is a part of the checkpoint")
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing narrower
        raise BadCheckpoint(f"{path} is not a tokenizer file: {error}") from error
