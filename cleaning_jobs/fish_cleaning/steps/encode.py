"""A clip that passed → the bytes and the metadata that a shard holds. The same clip gives the same bytes."""

import hashlib
import io
import json
from typing import Final

import soundfile

from fish_cleaning.clip import Cleaned, Clip, Item

VERSION: Final = 1

_BLOCK_SAMPLES: Final = 65_536  # libsndfile's encoders are known to crash on minutes of sound in one call


def encode(item: Item, clip: Clip, *, source_sha256: str) -> Cleaned:
    """Encode as 16-bit FLAC and write down where the sound came from and what was measured."""
    flac = _flac(clip)
    metadata = {
        "id": item.id,
        "source": item.name,
        "source_sha256": source_sha256,
        "audio_sha256": hashlib.sha256(flac).hexdigest(),
        "sample_rate_hz": clip.sample_rate_hz,
        "source_channels": clip.source_channels,
        "duration_s": round(clip.duration_s, 4),
        "clipped_ratio": round(clip.clipped_ratio, 6),
        "loudness_lufs": round(clip.loudness_lufs, 2),
        "speech": [[segment.start_s, segment.end_s] for segment in clip.speech],
    }
    return Cleaned(metadata_json=json.dumps(metadata, sort_keys=True), flac=flac, duration_s=clip.duration_s)


def _flac(clip: Clip) -> bytes:
    target = io.BytesIO()
    with soundfile.SoundFile(
        target, "w", samplerate=clip.sample_rate_hz, channels=1, format="FLAC", subtype="PCM_16"
    ) as file:
        for first in range(0, len(clip.samples), _BLOCK_SAMPLES):
            file.write(clip.samples[first : first + _BLOCK_SAMPLES])
    return target.getvalue()
