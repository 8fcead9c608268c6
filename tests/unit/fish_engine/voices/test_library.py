"""A voice is kept whole, found again by a later process, and its id is never a path."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from fish_engine.errors import BadRequest, BadVoiceFolder, UnknownVoice, VoiceExists
from fish_engine.voices.library import Recording, Voice, VoiceLibrary


@pytest.fixture
def library(tmp_path):
    return VoiceLibrary(tmp_path)


def a_voice(voice_id="ann", **fields):
    return Voice(
        **{"voice_id": voice_id, "title": "Ann", "texts": ("one", "two"), "created_at": "", "updated_at": "", **fields}
    )


def test_a_voice_is_found_again_by_a_later_process(library, tmp_path):
    library.add(a_voice(tags=("calm",)), [b"1", b"2"])
    later = VoiceLibrary(tmp_path)
    assert later.voice("ann") == a_voice(tags=("calm",))
    assert later.recordings("ann") == [Recording(audio=b"1", text="one"), Recording(audio=b"2", text="two")]


def test_what_is_known_of_a_voice_changes_and_its_recordings_stay(library, tmp_path):
    library.add(a_voice(), [b"1", b"2"])
    library.change(a_voice(title="Anna", texts=()))
    assert VoiceLibrary(tmp_path).voice("ann").title == "Anna"
    assert [recording.text for recording in library.recordings("ann")] == ["one", "two"]


def test_a_deleted_voice_leaves_nothing_behind(library, tmp_path):
    library.add(a_voice(), [b"1", b"2"])
    library.delete("ann")
    assert list(tmp_path.iterdir()) == []
    for act in (library.voice, library.recordings, library.delete):
        with pytest.raises(UnknownVoice, match="there is no voice 'ann' here"):
            act("ann")


@pytest.mark.parametrize("voice_id", ["", "../up", "a/b", "a\\b", "a\n", ".", "é", "a" * 256])
def test_an_id_that_could_be_a_path_is_refused(library, tmp_path, voice_id):
    with pytest.raises(BadRequest, match="expected 1 to 255 letters"):
        library.add(a_voice(voice_id), [b"1", b"2"])
    assert list(tmp_path.iterdir()) == []


def test_of_many_that_want_the_same_id_one_gets_it(library):
    def add(audio):
        try:
            library.add(a_voice(texts=("x",)), [audio])
        except VoiceExists:
            return None
        return audio

    with ThreadPoolExecutor(4) as pool:
        kept = [audio for audio in pool.map(add, [b"1", b"2", b"3", b"4"]) if audio]
    assert [recording.audio for recording in library.recordings("ann")] == kept


def test_a_record_that_cannot_be_read_is_named(library, tmp_path):
    library.add(a_voice(), [b"1", b"2"])
    (record,) = tmp_path.rglob("voice.json")
    for broken in ("{", "{}", "[]"):
        record.write_text(broken)
        with pytest.raises(BadVoiceFolder, match=r"voice\.json is not the record of a voice"):
            VoiceLibrary(tmp_path)
