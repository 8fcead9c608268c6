"""Makes a corpus whose faults are known exactly, from clean speech: for tests, demonstrations and trying a recipe.

Cuts of 3 to 10 s at many gains, mostly good; some clipped, silent or noise only; and, where there is room, one each of the
files that break pipelines: not audio, empty, truncated, not finite, a name in no encoding. `labels.json` says which is which.
"""

import io
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import numpy as np
import soundfile
from numpy.random import Generator
from numpy.typing import NDArray

from fish_cleaning.clip import Reason
from fish_cleaning.errors import BadInput, BadSetting
from fish_cleaning.source import AudioFolder

RATE_HZ: Final = 16_000
LABELS: Final = "labels.json"

Samples = NDArray[np.float32]


def make_corpus(speech: AudioFolder, target: Path, *, items: int, seed: int, cut_s: tuple[float, float]) -> None:
    """Write that many recordings and their labels; the same seed makes the same files."""
    if items < 1:
        raise BadSetting(f"items {items}: expected at least 1")
    random = np.random.default_rng(seed)
    tape = _tape(speech)
    target.mkdir(parents=True, exist_ok=True)
    labels: dict[str, str | None] = {}
    plan = _kinds(items, random)
    for number, (name, reason, write) in enumerate(plan):
        file_name = f"{number:05d}-{name}"
        (target / file_name).write_bytes(write(_cut(tape, random, cut_s), random))
        labels[file_name] = reason
    (target / LABELS).write_text(json.dumps(labels, indent=1) + "\n", encoding="utf-8")


Write = Callable[[Samples, Generator], bytes]


def _kinds(items: int, random: Generator) -> Iterator[tuple[str, str | None, Write]]:
    """Yield the end of the name, the label (None for good) and the maker of each file."""
    breakers: list[tuple[str, str | None, Write]] = [
        ("not-audio.wav", Reason.NOT_AUDIO, lambda _, random: random.bytes(4096)),
        ("empty.flac", Reason.EMPTY, lambda _, __: b""),
        ("truncated.wav", Reason.TRUNCATED, lambda cut, _: _wav(cut)[: len(cut)]),
        ("nan.wav", Reason.NOT_FINITE, lambda cut, _: _with_nan(cut)),
        (os.fsdecode(b"gr\xfc\xdfe aus\tk\xf6ln.wav"), None, lambda cut, _: _wav(cut)),
    ]
    chosen = breakers if items >= 2 * len(breakers) else []
    yield from chosen
    for _ in range(items - len(chosen)):
        draw = random.random()
        if draw < 0.06:
            yield "clipped.flac", Reason.CLIPPED, lambda cut, random: _flac(_clipped(cut, random))
        elif draw < 0.10:
            yield "silent.wav", Reason.TOO_QUIET, lambda cut, random: _wav(_noise(cut, random, level=1e-4))
        elif draw < 0.14:
            yield "noise.flac", Reason.NO_SPEECH, lambda cut, random: _flac(_noise(cut, random, level=0.03))
        elif draw < 0.57:
            yield "good.flac", None, lambda cut, random: _flac(_scaled(cut, random))
        else:
            yield "good.wav", None, lambda cut, random: _wav(_scaled(cut, random))


def _tape(speech: AudioFolder) -> Samples:
    """Join all recordings of the source into one."""
    clips = []
    for name in speech.names():
        samples, rate_hz = soundfile.read(speech.root / name, dtype="float32", always_2d=True)
        if rate_hz != RATE_HZ:
            raise BadInput(f"source {name}: {rate_hz} Hz; expected {RATE_HZ} Hz")
        clips.append(samples.mean(axis=1))
    if not clips:
        raise BadInput(f"source {speech.root}: no recordings in it; expected clean speech at {RATE_HZ} Hz")
    tape: Samples = np.concatenate(clips)
    return tape


def _cut(tape: Samples, random: Generator, cut_s: tuple[float, float]) -> Samples:
    """Take a stretch of the tape, which goes round."""
    length = int(random.uniform(*cut_s) * RATE_HZ)
    cut: Samples = np.take(tape, np.arange(length) + random.integers(len(tape)), mode="wrap")
    return cut


def _scaled(cut: Samples, random: Generator) -> Samples:
    peak = 10 ** (random.uniform(-18.0, -1.0) / 20)
    return cut * np.float32(peak / np.abs(cut).max())


def _clipped(cut: Samples, random: Generator) -> Samples:
    """Cut off the loudest hundredth and turn the result down, as a careless export does."""
    top = np.quantile(np.abs(cut), random.uniform(0.95, 0.99))
    return np.clip(cut, -top, top) * np.float32(random.uniform(0.3, 0.9) / top)


def _noise(cut: Samples, random: Generator, *, level: float) -> Samples:
    return (random.standard_normal(len(cut)) * level).astype(np.float32)


def _with_nan(cut: Samples) -> bytes:
    spoiled = cut.copy()
    spoiled[len(cut) // 2] = np.nan
    return _encoded(spoiled, format="WAV", subtype="FLOAT")


def _wav(samples: Samples) -> bytes:
    return _encoded(samples, format="WAV", subtype="PCM_16")


def _flac(samples: Samples) -> bytes:
    return _encoded(samples, format="FLAC", subtype="PCM_16")


def _encoded(samples: Samples, *, format: str, subtype: str) -> bytes:  # noqa: A002 - soundfile's word
    target = io.BytesIO()
    soundfile.write(target, samples, RATE_HZ, format=format, subtype=subtype)
    return target.getvalue()
