"""What sound can be sent as: the formats, and the rates and bit rates that each can have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fish_engine.errors import BadRequest

_PCM_RATES_HZ: Final = (44_100, 8_000, 16_000, 24_000, 32_000)
_HOSTED_OPUS_AUTO: Final = -1000
_OPUS_AUTO_BPS: Final = 48_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioFormat:
    """One format."""

    name: str
    media_type: str
    rates_hz: tuple[int, ...]
    """The first is the default."""
    codec: str = ""
    """The name of FFmpeg's encoder; none where the samples are the file."""
    container: str = ""
    """The name of FFmpeg's muxer."""
    options: tuple[tuple[str, str], ...] = ()
    """What the muxer is told, so that a file that cannot be rewound is right from its first byte."""
    codec_options: tuple[tuple[str, str], ...] = ()
    bit_rates_bps: tuple[int, ...] = ()
    """The first is the default; none where there is nothing to choose."""


# An Ogg page is closed after 40 ms and not after a second, so that sound leaves when it is made.
_OGG: Final = (("page_duration", "40000"),)
# Speech needs no more effort than this; the default takes half as much time again for mp3, and three times as much for opus.
_EFFORT: Final = (("compression_level", "5"),)
_ALL: Final = (
    AudioFormat(
        name="mp3",
        media_type="audio/mpeg",
        rates_hz=(44_100, 32_000),
        codec="libmp3lame",
        container="mp3",
        options=(("write_xing", "0"), ("id3v2_version", "0")),
        codec_options=_EFFORT,
        bit_rates_bps=(128_000, 64_000, 192_000),
    ),
    AudioFormat(name="wav", media_type="audio/wav", rates_hz=_PCM_RATES_HZ),
    AudioFormat(name="pcm", media_type="audio/pcm", rates_hz=_PCM_RATES_HZ),
    AudioFormat(
        name="opus",
        media_type="audio/ogg",
        rates_hz=(48_000,),
        codec="libopus",
        container="ogg",
        options=_OGG,
        codec_options=_EFFORT,
        bit_rates_bps=(_OPUS_AUTO_BPS, 24_000, 32_000, 64_000),
    ),
    AudioFormat(
        name="flac",
        media_type="audio/flac",
        rates_hz=(44_100, 8_000, 16_000, 24_000, 32_000, 48_000),
        codec="flac",
        container="flac",
    ),
    AudioFormat(
        name="aac",
        media_type="audio/aac",
        rates_hz=(44_100, 16_000, 24_000, 32_000, 48_000),
        codec="aac",
        container="adts",
        bit_rates_bps=(96_000,),
    ),
    AudioFormat(name="ulaw", media_type="audio/basic", rates_hz=(8_000,), codec="pcm_mulaw", container="mulaw"),
    AudioFormat(name="alaw", media_type="audio/x-alaw-basic", rates_hz=(8_000,), codec="pcm_alaw", container="alaw"),
)
FORMATS: Final[Mapping[str, AudioFormat]] = {each.name: each for each in _ALL}


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """A format with everything chosen."""

    format: AudioFormat
    rate_hz: int
    bit_rate_bps: int | None


def chosen_encoding(name: str, *, rate_hz: int | None = None, bit_rate_bps: int | None = None) -> Encoding:
    """Return the format of that name, with its defaults where nothing was asked for.

    Raises:
        BadRequest: no such format, or one that cannot have this rate or bit rate; the message names those it can have.
    """
    audio_format = FORMATS.get(name)
    if audio_format is None:
        raise BadRequest(f"format: {name!r} is not supported; expected one of: {', '.join(FORMATS)}")
    rate_hz = audio_format.rates_hz[0] if rate_hz is None else rate_hz
    _check(f"sample_rate of {name}", rate_hz, audio_format.rates_hz)
    rates_bps = audio_format.bit_rates_bps
    if bit_rate_bps is None or not rates_bps:
        return Encoding(format=audio_format, rate_hz=rate_hz, bit_rate_bps=rates_bps[0] if rates_bps else None)
    _check(f"bit rate of {name}", bit_rate_bps, rates_bps)
    return Encoding(format=audio_format, rate_hz=rate_hz, bit_rate_bps=bit_rate_bps)


def opus_bit_rate_bps(asked: int) -> int | None:
    """Return bits per second of what clients call `opus_bitrate`: thousands in the SDK, ones in the API, -1000 for automatic."""
    if asked == _HOSTED_OPUS_AUTO:
        return None
    return asked * 1000 if 0 < asked < 1000 else asked


def _check(what: str, value: int, allowed: Sequence[int]) -> None:
    if value not in allowed:
        raise BadRequest(f"{what}: {value} is not supported; expected one of: {', '.join(map(str, sorted(allowed)))}")
