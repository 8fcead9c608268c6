"""The body of `POST /v1/tts`: the fields of Fish Audio's hosted API and of its open server.

Unknown fields and nulls are ignored, as both of them do. A field that this server cannot honour is refused where that would
be heard, with what it can do instead.
"""

import base64
import binascii
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from fish_engine.audio.formats import chosen_encoding, opus_bit_rate_bps
from fish_engine.audio.writer import Sounding


def _bytes_of(value: object) -> object:
    """Turn base64, which is all that JSON can carry, into bytes."""
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError("expected bytes (msgpack) or base64 text (JSON)") from error


class Body(BaseModel):
    """What all bodies have in common: types are not converted, nulls and unknown fields are ignored."""

    model_config = ConfigDict(strict=True, extra="ignore", allow_inf_nan=False, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: object) -> object:
        """Take null for "not given": the SDKs send it for every option that their user left alone."""
        return {key: item for key, item in value.items() if item is not None} if isinstance(value, dict) else value


class ReferenceBody(Body):
    """A recording of a voice, and what is said in it."""

    audio: Annotated[bytes, BeforeValidator(_bytes_of)]
    text: str


class ProsodyBody(Body):
    """How to say it."""

    speed: float = Field(default=1.0, ge=0.5, le=2.0)
    volume: float = Field(default=0.0, ge=-20.0, le=20.0)
    """Decibels."""
    normalize_loudness: bool = True


class SpeechFields(Body):
    """How to speak; the text may come later."""

    text: str = ""
    format: str = "mp3"
    sample_rate: int | None = None
    """Hertz; the format's own default where none is given."""
    mp3_bitrate: int | None = None
    """Thousands of bits a second."""
    opus_bitrate: int | None = None
    """Thousands of bits a second, or bits a second, or -1000 for what the server thinks best."""
    references: list[ReferenceBody | list[ReferenceBody]] = Field(default_factory=list, max_length=8)
    """One voice for each speaker; a list in the list is several recordings of the same speaker."""
    reference_id: str | list[str] | None = None
    """A voice that is kept here, or one for each speaker; wins over `references`."""
    temperature: float = Field(default=0.7, ge=0.0, le=1.0)
    """0 is greedy."""
    top_p: float = Field(default=0.7, ge=0.0, le=1.0)
    repetition_penalty: float = Field(default=1.0, ge=0.9, le=2.0)
    max_new_tokens: int = Field(default=1024, ge=1, le=32_768)
    """Frames at most, each of 46 ms, for each part of the text."""
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    prosody: ProsodyBody = ProsodyBody()
    streaming: bool = True
    """False: one response with true sizes, after the last sample was made."""
    latency: Literal["low", "normal", "balanced"] = "normal"
    chunk_length: int = Field(default=200, ge=100, le=1000)
    """Characters of the longest part that a text is cut into."""
    condition_on_previous_chunks: bool = True

    def sounding(self) -> Sounding:
        """Return how the sound is to be sent.

        Raises:
            BadRequest: a format that we do not have, or that cannot have this rate or bit rate.
        """
        bit_rates = {
            "mp3": None if self.mp3_bitrate is None else self.mp3_bitrate * 1000,
            "opus": None if self.opus_bitrate is None else opus_bit_rate_bps(self.opus_bitrate),
        }
        encoding = chosen_encoding(self.format, rate_hz=self.sample_rate, bit_rate_bps=bit_rates.get(self.format))
        return Sounding(encoding=encoding, speed=self.prosody.speed, gain=10 ** (self.prosody.volume / 20))


class TTSBody(SpeechFields):
    """A text and how to speak it."""

    text: str

    @field_validator("text")
    @classmethod
    def _something_to_say(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("expected some text, found none")
        if not _is_unicode(value):
            raise ValueError("expected valid Unicode, found a lone surrogate")
        return value


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
