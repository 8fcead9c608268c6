"""Voices that are kept, as each kind of client keeps and uses them."""

import fish_audio_sdk
import ormsgpack
import pytest
from fishaudio import FishAudio
from fishaudio.exceptions import APIError, NotFoundError
from fishaudio.types import ReferenceAudio, TTSConfig

GREEDY = TTSConfig(format="pcm", temperature=0.0, max_new_tokens=6)


@pytest.fixture
def client(engine):
    return FishAudio(api_key="any", base_url=engine.url)


@pytest.fixture
def voice(client, a_recording):
    made = client.voices.create(
        title="Ann", voices=[a_recording], texts=["noise"], tags=["calm"], description="of noise"
    )
    yield made
    if any(item.id == made.id for item in client.voices.list().items):
        client.voices.delete(made.id)


def test_the_sdk_makes_finds_changes_and_deletes_a_voice(client, voice):
    assert (voice.title, voice.tags, voice.description, voice.samples[0].text) == ("Ann", ["calm"], "of noise", "noise")
    assert [item.id for item in client.voices.list(title="an", tags="calm").items] == [voice.id]
    assert client.voices.list(title="bob").total == 0
    client.voices.update(voice.id, title="Anna")
    assert client.voices.get(voice.id).title == "Anna"
    client.voices.delete(voice.id)
    for act in (client.voices.get, client.voices.delete):
        with pytest.raises(NotFoundError):
            act(voice.id)


def test_a_kept_voice_sounds_like_its_recording(client, voice, a_recording):
    by_id = client.tts.convert(text="Hello.", reference_id=voice.id, config=GREEDY)
    inline = client.tts.convert(
        text="Hello.", config=GREEDY, references=[ReferenceAudio(audio=a_recording, text="noise")]
    )
    assert by_id == inline
    assert by_id != client.tts.convert(text="Hello.", config=GREEDY)
    live = b"".join(client.tts.stream_websocket(iter(["Hello."]), reference_id=voice.id, config=GREEDY))
    assert live == by_id


def test_the_legacy_sdk_reads_a_voice(engine, voice):
    with fish_audio_sdk.Session("any", base_url=engine.url) as session:
        assert session.get_model(voice.id).title == "Ann"
        assert session.list_models().total >= 1


def test_an_unknown_voice_is_a_mistake_of_the_request(client):
    with pytest.raises(APIError, match="there is no voice 'nobody' here") as refusal:
        client.tts.convert(text="Hello.", reference_id="nobody")
    assert refusal.value.status == 400


def test_a_voice_without_sound_is_not_kept(client):
    before = client.voices.list().total
    with pytest.raises(APIError, match="cannot be read"):
        client.voices.create(title="Ann", voices=[b"no sound"], texts=["x"])
    with pytest.raises(APIError, match="texts: expected one for each of the 1 voices, found 0"):
        client.voices.create(title="Ann", voices=[b"no sound"])
    assert client.voices.list().total == before


def test_the_open_servers_routes_manage_the_same_voices(engine, a_recording):
    http, json = engine.client, {"accept": "application/json"}
    files, data = {"audio": ("a.wav", a_recording)}, {"id": "my voice", "text": "noise"}
    added = http.post("/v1/references/add", files=files, data=data, headers=json)
    assert (added.status_code, added.json()["reference_id"]) == (200, "my voice")
    assert http.post("/v1/references/add", files=files, data=data).status_code == 409
    assert engine.speak(reference_id="my voice", max_new_tokens=2).status_code == 200
    names = {"old_reference_id": "my voice", "new_reference_id": "ours"}
    assert http.post("/v1/references/update", json=names, headers=json).json()["success"]
    assert http.post("/v1/references/update", json=names).status_code == 404
    listed = http.get("/v1/references/list")
    assert listed.headers["content-type"] == "application/msgpack"
    assert "ours" in ormsgpack.unpackb(listed.content)["reference_ids"]
    gone = http.request("DELETE", "/v1/references/delete", json={"reference_id": "ours"}, headers=json)
    assert gone.json()["success"]
    assert http.request("DELETE", "/v1/references/delete", params={"reference_id": "ours"}).status_code == 404
    bad = http.post("/v1/references/add", files=files, data={**data, "id": "../up"})
    assert (bad.status_code, set(bad.json())) == (400, {"status", "message"})


def test_the_routes_of_openai_manage_the_same_voices(engine, a_recording):
    http = engine.client
    made = http.post("/v1/audio/voices", files={"audio_sample": a_recording}, data={"name": "Ann", "text": "noise"})
    assert made.status_code == 201
    voice_id = made.json()["id"]
    assert voice_id in [item["id"] for item in http.get("/v1/audio/voices").json()["data"]]
    for voice in (voice_id, {"id": voice_id}):
        spoken = http.post("/v1/audio/speech", json={"input": "Hi.", "voice": voice, "max_new_tokens": 2})
        assert spoken.status_code == 200
    assert http.delete(f"/v1/audio/voices/{voice_id}").json()["deleted"]
    assert http.delete(f"/v1/audio/voices/{voice_id}").status_code == 404
