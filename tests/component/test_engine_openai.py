"""The engine as OpenAI's unmodified client uses it, and with keys."""

import base64
import io

import httpx
import openai
import pytest
import soundfile
from fishaudio import FishAudio
from fishaudio.exceptions import AuthenticationError
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

SPEECH = {"model": "tts-1", "voice": "alloy", "input": "Hello."}
QUICK = {"temperature": 0, "max_new_tokens": 8}


def openai_client(engine, key="any"):
    return openai.OpenAI(api_key=key, base_url=f"{engine.url}/v1", max_retries=0)


@pytest.fixture
def client(engine):
    return openai_client(engine)


def test_a_file_comes_in_the_format_that_was_asked_for(client):
    for response_format in ("mp3", "wav", "opus"):
        file = client.audio.speech.create(**SPEECH, response_format=response_format, extra_body=QUICK).content
        samples, rate_hz = soundfile.read(io.BytesIO(file))
        assert len(samples) / rate_hz == pytest.approx(8 * 2048 / 44_100, abs=0.06)


def test_pcm_has_24_khz_and_speed_keeps_to_its_factor(client):
    def pcm(**fields):
        return client.audio.speech.create(**SPEECH, response_format="pcm", extra_body=QUICK, **fields).content

    plain = pcm()
    assert len(plain) / 2 / 24_000 == pytest.approx(8 * 2048 / 44_100, abs=0.001)
    assert len(pcm(speed=4)) == pytest.approx(len(plain) / 4, rel=0.2)


def test_a_stream_is_heard_before_its_end(client):
    with client.audio.speech.with_streaming_response.create(**SPEECH, response_format="pcm") as response:
        assert next(response.iter_bytes(1024))


def test_instructions_change_how_it_sounds(client):
    def wav(**fields):
        return client.audio.speech.create(**SPEECH, response_format="wav", extra_body=QUICK, **fields).content

    assert wav(instructions="Whisper.") != wav()


def test_events_carry_the_same_sound_and_end_with_usage(client, engine):
    fields = {**SPEECH, "response_format": "pcm", **QUICK}
    with engine.client.stream("POST", "/v1/audio/speech", json={**fields, "stream_format": "sse"}) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        events = [
            httpx.Response(200, text=line.removeprefix("data: ")).json() for line in response.iter_lines() if line
        ]
    sound = b"".join(base64.b64decode(event["audio"]) for event in events[:-1])
    assert {event["type"] for event in events[:-1]} == {"speech.audio.delta"}
    assert events[-1]["type"] == "speech.audio.done"
    assert events[-1]["usage"]["output_tokens"] == 8
    assert sound == engine.client.post("/v1/audio/speech", json=fields).content


def test_models_are_listed(client):
    assert "s2-pro" in [model.id for model in client.models.list()]


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"input": ""}, "expected some text, found none"),
        ({"voice": "nobody"}, "there is no voice 'nobody' here"),
        ({"response_format": "mp4"}, "'mp4' is not supported"),
        ({"speed": 5}, "speed: expected less than or equal to 4"),
    ],
)
def test_mistakes_are_told_in_the_shape_that_the_client_reads(client, fields, complaint):
    with pytest.raises(openai.BadRequestError, match=complaint):
        client.audio.speech.create(**{**SPEECH, **fields})


def test_with_keys_only_those_who_bring_one_are_served(start_engine, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("secret\n")
    engine = start_engine("127.43.0.7", max_streams=1, api_keys_file=keys)
    assert "no keys are set" not in engine.welcome
    assert openai_client(engine, "secret").audio.speech.create(**SPEECH, extra_body=QUICK).content
    with pytest.raises(openai.AuthenticationError, match="no valid API key"):
        openai_client(engine).audio.speech.create(**SPEECH)
    with pytest.raises(AuthenticationError):
        FishAudio(api_key="other", base_url=engine.url).tts.convert(text="Hello.")
    live = engine.url.replace("http", "ws") + "//v1/tts/live"
    with pytest.raises(InvalidStatus) as refusal, connect(live):
        pass
    assert refusal.value.response.status_code == 401
    with connect(f"{live}?api_key=secret"):
        pass
    assert engine.client.get("/v1/load").status_code == engine.client.get("/v1/health").status_code == 200
