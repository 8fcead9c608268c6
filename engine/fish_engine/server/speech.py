"""From a checked body to what the engine runs."""

import math
import secrets
from collections.abc import Sequence
from typing import Final

from fish_engine.engine import Speech
from fish_engine.errors import BadRequest
from fish_engine.loading import LoadedEngine
from fish_engine.model.prompt import SPEAKER_TAG, Reference
from fish_engine.model.sampling import SamplingParams
from fish_engine.server.schemas import ReferenceBody, TTSBody
from fish_engine.voices.references import ReferenceEncoder

_FRAMES_PER_CHAR: Final = 8
"""Five times the pace of slow English, and above that of scripts where a character is a word."""
_FRAMES_FOR_ANY_TEXT: Final = 64
_LIKELY_FRAMES_PER_CHAR: Final = 2


def prepare(body: TTSBody, loaded: LoadedEngine, voices: ReferenceEncoder) -> Speech:
    """Return the request for the engine. Encodes references, so it may take seconds: call it off the event loop.

    Raises:
        BadRequest: a reference cannot be read, or text and references leave no room for the speech.
    """
    recordings = _with_speakers(body.references)
    references = [Reference(text=item.text, codes=voices.codes(item.audio)) for item in recordings]
    prompt = loaded.prompts.build(body.text, references)
    seed = secrets.randbits(63) if body.seed is None else body.seed
    sampling = SamplingParams(
        temperature=body.temperature, top_p=body.top_p, repetition_penalty=body.repetition_penalty, seed=seed
    )
    room = loaded.model.config.slow.max_positions - len(prompt)
    return Speech(prompt=prompt, sampling=sampling, frame_limit=_frame_limit(body, room))


def _frame_limit(body: TTSBody, room: int) -> int:
    """Return how many frames the utterance may have: what was asked, what such a text can last, and what fits.

    Fish Audio counts `max_new_tokens` for each piece of `chunk_length` characters, so a long text has several times as many.
    """
    asked = body.max_new_tokens * math.ceil(len(body.text) / body.chunk_length)
    longest = min(asked, _FRAMES_FOR_ANY_TEXT + _FRAMES_PER_CHAR * len(body.text))
    likely = min(longest, _FRAMES_FOR_ANY_TEXT + _LIKELY_FRAMES_PER_CHAR * len(body.text))
    if room < likely:
        raise BadRequest(
            f"text ({len(body.text)} characters) and references leave room for {max(room, 0)} frames of speech, "
            f"but it is likely to need {likely}; send less at a time"
        )
    return min(longest, room)


def _with_speakers(references: Sequence[ReferenceBody | list[ReferenceBody]]) -> list[ReferenceBody]:
    """Return a flat list in which every recording carries the tag of its speaker, the place in `references`."""
    groups = [item if isinstance(item, list) else [item] for item in references]
    return [_tagged(recording, speaker) for speaker, group in enumerate(groups) for recording in group]


def _tagged(recording: ReferenceBody, speaker: int) -> ReferenceBody:
    if SPEAKER_TAG.search(recording.text):
        return recording
    return recording.model_copy(update={"text": f"<|speaker:{speaker}|>{recording.text}"})
