"""Voices that are kept: recordings and what is said in them, by an id, on disk.

    FOLDER/<hash of the id>/voice.json, 0.audio, 1.audio, …

An id is a key and never a path. A voice is written aside and moved into place, so that it is there whole or not at all.
"""

import contextlib
import hashlib
import json
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from fish_engine.errors import BadRequest, BadVoiceFolder, UnknownVoice, VoiceExists

VOICE_ID: Final = re.compile(r"[a-zA-Z0-9\-_ ]{1,255}")
_RECORD: Final = "voice.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """What is known of a voice, but for its sound."""

    voice_id: str
    title: str
    description: str = ""
    tags: tuple[str, ...] = ()
    visibility: str = "private"
    texts: tuple[str, ...]
    """What is said in each recording."""
    created_at: str
    """ISO 8601, UTC."""
    updated_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One recording of a voice."""

    audio: bytes
    text: str


class VoiceLibrary:
    """The voices of one folder, which belongs to one server. Safe for several threads."""

    def __init__(self, folder: Path) -> None:
        """Read what is there.

        Raises:
            OSError: the folder cannot be made or read.
            BadVoiceFolder: something in it is not what this server has written.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._lock = threading.Lock()
        self._voices = {voice.voice_id: voice for voice in _read_all(folder)}

    def voices(self) -> Mapping[str, Voice]:
        """Return all voices by id."""
        with self._lock:
            return dict(self._voices)

    def voice(self, voice_id: str) -> Voice:
        """Return a voice, or raise `UnknownVoice`."""
        with self._lock:
            return self._known(voice_id)

    def recordings(self, voice_id: str) -> list[Recording]:
        """Return the recordings of a voice, or raise `UnknownVoice`."""
        with self._lock:
            voice, folder = self._known(voice_id), self._place(voice_id)
            return [
                Recording(audio=(folder / f"{index}.audio").read_bytes(), text=text)
                for index, text in enumerate(voice.texts)
            ]

    def add(self, voice: Voice, recordings: Sequence[bytes]) -> None:
        """Keep a voice; `BadRequest` for an id that cannot be, `VoiceExists` for one that is taken."""
        if not VOICE_ID.fullmatch(voice.voice_id):
            raise BadRequest(
                f"voice id {voice.voice_id[:80]!r}: expected 1 to 255 letters, digits, spaces, dashes or underscores"
            )
        assert len(recordings) == len(voice.texts)
        with self._lock:
            if voice.voice_id in self._voices:
                raise VoiceExists(f"there is a voice {voice.voice_id!r} already")
            with _aside(self._folder) as draft:
                for index, recording in enumerate(recordings):
                    (draft / f"{index}.audio").write_bytes(recording)
                _write_record(draft, voice)
                draft.rename(self._place(voice.voice_id))
            self._voices[voice.voice_id] = voice

    def change(self, voice: Voice) -> None:
        """Replace what is known of a voice; its recordings stay."""
        with self._lock:
            kept = replace(voice, texts=self._known(voice.voice_id).texts)
            _write_record(self._place(voice.voice_id), kept)
            self._voices[voice.voice_id] = kept

    def delete(self, voice_id: str) -> None:
        """Forget a voice, or raise `UnknownVoice`."""
        with self._lock:
            self._known(voice_id)
            with _aside(self._folder) as grave:  # moved first, so that half a voice is never found
                self._place(voice_id).rename(grave / "voice")
            del self._voices[voice_id]

    def _known(self, voice_id: str) -> Voice:
        if (voice := self._voices.get(voice_id)) is None:
            raise UnknownVoice(f"reference_id: there is no voice {voice_id[:80]!r} here")
        return voice

    def _place(self, voice_id: str) -> Path:
        return self._folder / hashlib.sha256(voice_id.encode()).hexdigest()[:32]


@contextlib.contextmanager
def _aside(folder: Path) -> Iterator[Path]:
    """Yield a folder to work in, which is gone afterwards unless it was moved away."""
    path = Path(tempfile.mkdtemp(prefix=".", dir=folder))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _write_record(folder: Path, voice: Voice) -> None:
    draft = folder / f"{_RECORD}.new"
    draft.write_text(json.dumps(asdict(voice), ensure_ascii=False))
    draft.replace(folder / _RECORD)


def _read_all(folder: Path) -> Iterator[Voice]:
    for record in folder.glob(f"[0-9a-f]*/{_RECORD}"):
        try:
            fields = json.loads(record.read_text())
            yield Voice(**{**fields, "tags": tuple(fields["tags"]), "texts": tuple(fields["texts"])})
        except (ValueError, TypeError, KeyError) as error:
            raise BadVoiceFolder(
                f"{record} is not the record of a voice: {error}; put it right or remove its folder"
            ) from error
