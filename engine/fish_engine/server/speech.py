"""From a checked body to what the engine runs: who speaks, and for each part of the text what to say and how long at most."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fish_engine.engine import Speech
from fish_engine.errors import BadRequest
from fish_engine.loading import LoadedEngine
from fish_engine.model.prompt import SPEAKER_TAG, Reference, Turn
from fish_engine.model.sampling import SamplingParams
from fish_engine.server.schemas import SpeechFields
from fish_engine.voices.library import Recording, VoiceLibrary
from fish_engine.voices.references import ReferenceEncoder

_FRAMES_PER_CHAR: Final = 8
"""Five times the pace of slow English, and above that of scripts where a character is a word."""
_FRAMES_FOR_ANY_TEXT: Final = 64
_LIKELY_POSITIONS_PER_CHAR: Final = 5
"""Three for a character's tokens, which is a token for each of its bytes, and two for frames."""
_LEAST_PART_CHARS: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Speaker:
    """A voice that is ready to speak, part after part."""

    loaded: LoadedEngine
    references: Sequence[Reference]
    sampling: SamplingParams
    max_frames: int
    """Of one part."""
    part_chars: int
    """Longest part of a text: what was asked for, or what the model's context holds."""
    is_conditioned: bool
    """Each part follows from the one before."""

    def speech(self, text: str, *, index: int = 0, before: Turn | None = None) -> Speech:
        """Return the request for part number `index`; it follows from `before` where there is room for both.

        Raises:
            BadRequest: no room is left for the speech.
        """
        longest = min(self.max_frames, _FRAMES_FOR_ANY_TEXT + _FRAMES_PER_CHAR * len(text))
        sampling = self._sampling(index)
        if before is not None and self.is_conditioned:
            prompt = self.loaded.prompts.build(text, self.references, [before])
            if self._room(len(prompt)) >= longest:
                return Speech(prompt=prompt, sampling=sampling, frame_limit=longest)
        prompt = self.loaded.prompts.build(text, self.references)
        room = self._room(len(prompt))
        if room < 1:
            raise BadRequest("text and references leave no room for speech; send less at a time")
        return Speech(prompt=prompt, sampling=sampling, frame_limit=min(longest, room))

    def _room(self, prompt_len: int) -> int:
        return self.loaded.model.config.slow.max_positions - prompt_len

    def _sampling(self, index: int) -> SamplingParams:
        """Return how to draw: each part with a seed of its own, which wraps around at 64 bits."""
        seed = (self.sampling.seed + index + 2**63) % 2**64 - 2**63
        return SamplingParams(
            temperature=self.sampling.temperature,
            top_p=self.sampling.top_p,
            repetition_penalty=self.sampling.repetition_penalty,
            seed=seed,
        )


def prepare(body: SpeechFields, loaded: LoadedEngine, encoder: ReferenceEncoder, library: VoiceLibrary) -> Speaker:
    """Return the speaker. Encodes references, so it may take seconds: call it off the event loop.

    Raises:
        BadRequest: there is no such voice, a reference cannot be read, or references leave no room for the speech.
    """
    recordings = _with_speakers(_groups(body, library))
    references = [Reference(text=item.text, codes=encoder.codes(item.audio)) for item in recordings]
    seed = secrets.randbits(63) if body.seed is None else body.seed
    return Speaker(
        loaded=loaded,
        references=references,
        sampling=SamplingParams(
            temperature=body.temperature, top_p=body.top_p, repetition_penalty=body.repetition_penalty, seed=seed
        ),
        max_frames=body.max_new_tokens,
        part_chars=min(body.chunk_length, _fitting_chars(loaded, references)),
        is_conditioned=body.condition_on_previous_chunks,
    )


def _fitting_chars(loaded: LoadedEngine, references: Sequence[Reference]) -> int:
    """Return how long a part can be that is likely to be said to its end within the model's context."""
    room = loaded.model.config.slow.max_positions - len(loaded.prompts.build("", references))
    chars = (room - _FRAMES_FOR_ANY_TEXT) // _LIKELY_POSITIONS_PER_CHAR
    if chars < _LEAST_PART_CHARS:
        raise BadRequest(
            f"references leave room for {max(room, 0)} positions of text and speech, which is too little for a sentence; "
            "send shorter or fewer recordings"
        )
    return chars


def _groups(body: SpeechFields, library: VoiceLibrary) -> list[list[Recording]]:
    """Return the recordings of each speaker."""
    if body.reference_id:
        ids = [body.reference_id] if isinstance(body.reference_id, str) else body.reference_id
        return [library.recordings(voice_id) for voice_id in ids]
    groups = [item if isinstance(item, list) else [item] for item in body.references]
    return [[Recording(audio=item.audio, text=item.text) for item in group] for group in groups]


def _with_speakers(groups: Sequence[Sequence[Recording]]) -> list[Recording]:
    """Return a flat list in which every recording carries the tag of its speaker, the place in `groups`."""
    return [_tagged(recording, speaker) for speaker, group in enumerate(groups) for recording in group]


def _tagged(recording: Recording, speaker: int) -> Recording:
    if SPEAKER_TAG.search(recording.text):
        return recording
    return Recording(audio=recording.audio, text=f"<|speaker:{speaker}|>{recording.text}")
