r"""The one place where a prompt is laid out; every route comes through here.

    <|im_start|>system\n … [reference texts, reference codes] <|im_end|>\n
    [what was said before: a user's text and an assistant's codes]
    <|im_start|>user\n     TEXT                               <|im_end|>\n
    <|im_start|>assistant\n<|voice|>                          ← generation starts here

Each piece is tokenised on its own, because merges across pieces would give ids that the model was not trained on.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from fish_engine.model.config import DualARConfig
from fish_engine.model.tokenizer import TextTokenizer

SPEAKER_TAG: Final = re.compile(r"<\|speaker:\d+\|>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A voice to speak with: what was said, and the codes [codebooks, frames] of how it sounded."""

    text: str
    codes: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A part of the text that has been said, and the codes [codebooks, frames] of how."""

    text: str
    codes: Tensor


class PromptBuilder:
    """Lays out prompts for one checkpoint."""

    def __init__(self, tokenizer: TextTokenizer, config: DualARConfig) -> None:
        self._tokenizer = tokenizer
        self._config = config

    def build(self, text: str, references: Sequence[Reference] = (), before: Sequence[Turn] = ()) -> Tensor:
        """Return the columns [T, 1 + codebooks] int64 after which the first frame follows."""
        parts = [self._piece("<|im_start|>system\n"), *self._instruction(references), self._piece("<|im_end|>\n")]
        for turn in before:
            parts += [*self._asked(turn.text), self._codes(turn.codes), self._piece("<|im_end|>\n")]
        return torch.cat([*parts, *self._asked(text)])

    def _asked(self, text: str) -> list[Tensor]:
        """Return a user's turn, and the beginning of the answer."""
        user, assistant = self._piece("<|im_start|>user\n"), self._piece("<|im_start|>assistant\n<|voice|>")
        return [user, self._text(text), self._piece("<|im_end|>\n"), assistant]

    def _instruction(self, references: Sequence[Reference]) -> list[Tensor]:
        if not references:
            return [self._piece("convert the provided text to speech")]
        said = "\n".join(_with_speaker(reference.text, index) for index, reference in enumerate(references))
        opening = "convert the provided text to speech reference to the following:\n\nText:\n"
        codes = [self._codes(reference.codes) for reference in references]
        return [self._piece(opening), self._text(said), self._piece("\n\nSpeech:\n"), *codes]

    def _piece(self, piece: str) -> Tensor:
        return self._columns(self._tokenizer.encode_piece(piece))

    def _text(self, text: str) -> Tensor:
        return self._columns(self._tokenizer.encode_text(text))

    def _columns(self, ids: Sequence[int]) -> Tensor:
        columns = torch.zeros(len(ids), self._config.column_rows, dtype=torch.int64)
        columns[:, 0] = torch.tensor(ids, dtype=torch.int64)
        return columns

    def _codes(self, codes: Tensor) -> Tensor:
        frames = codes.T.to(device="cpu", dtype=torch.int64)  # [frames, codebooks]
        return torch.cat((frames[:, :1] + self._config.semantic_begin_id, frames), dim=1)


def _with_speaker(text: str, index: int) -> str:
    return text if SPEAKER_TAG.search(text) else f"<|speaker:{index}|>{text}"
