"""The order of the steps, cheapest first; the first to reject ends the chain.

A step's version is part of the configuration's hash: raise it when the step would answer differently.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from fish_cleaning.clip import Cleaned, Clip, Item, Reject
from fish_cleaning.steps import clipping, decode, encode, loudness, speech
from fish_cleaning.steps.clipping import ClippingConfig, measure_clipping
from fish_cleaning.steps.decode import DecodeConfig
from fish_cleaning.steps.loudness import LoudnessConfig, measure_loudness
from fish_cleaning.steps.speech import SpeechConfig, find_speech

VERSIONS: Final = {
    step.__name__.rpartition(".")[2]: step.VERSION for step in (decode, clipping, loudness, speech, encode)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepConfigs:
    """What each step is asked for. Everything in here decides the output, so all of it is in the configuration's hash."""

    decode: DecodeConfig = field(default_factory=DecodeConfig)
    clipping: ClippingConfig = field(default_factory=ClippingConfig)
    loudness: LoudnessConfig = field(default_factory=LoudnessConfig)
    speech: SpeechConfig = field(default_factory=SpeechConfig)


def clean(item: Item, recording: bytes, configs: StepConfigs) -> Cleaned | Reject:
    """Take the bytes of one recording through all steps."""
    clip = decode.decode(recording, configs.decode)
    if isinstance(clip, Reject):
        return clip
    for step in _steps(configs):
        outcome = step(clip)
        if isinstance(outcome, Reject):
            return replace(outcome, duration_s=clip.duration_s)
        clip = outcome
    return encode.encode(item, clip, source_sha256=hashlib.sha256(recording).hexdigest())


def _steps(configs: StepConfigs) -> Iterator[Callable[[Clip], Clip | Reject]]:
    yield lambda clip: measure_clipping(clip, configs.clipping)
    yield lambda clip: measure_loudness(clip, configs.loudness)
    yield lambda clip: find_speech(clip, configs.speech)


def load_models() -> None:
    """Load what the steps load once a process, so that the first item takes no longer than the others."""
    speech.model()
