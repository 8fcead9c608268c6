"""The WebSocket of the engine, first as its unmodified clients use it, then as a client may misuse it."""

import asyncio
import contextlib
import io
import os
import random
import signal
import threading

import fish_audio_sdk
import ormsgpack
import pytest
import soundfile
from fishaudio import AsyncFishAudio, FishAudio
from fishaudio.exceptions import APIError, RateLimitError
from fishaudio.types import FlushEvent, ReferenceAudio, TTSConfig
from websockets.asyncio.client import connect as connect_later
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

LONG_SEED = 3  # with these random weights this seed speaks until the frame limit
WORDS = ["Hello there, how are you? ", "I am ", "well. And ", "you?"]


@pytest.fixture
def client(engine):
    return FishAudio(api_key="any", base_url=engine.url)


def duration_s(file):
    samples, rate_hz = soundfile.read(io.BytesIO(file))
    return len(samples) / rate_hz


def test_the_sdk_speaks_in_one_request_in_each_of_its_formats(client):
    config = TTSConfig(temperature=0.0, max_new_tokens=10)
    for audio_format in ("mp3", "wav", "opus"):
        file = client.tts.convert(text="Hello.", format=audio_format, config=config)
        assert duration_s(file) == pytest.approx(10 * 2048 / 44_100, abs=0.06)
    assert len(client.tts.convert(text="Hello.", format="pcm", config=config)) == 10 * 4096
    assert b"".join(client.tts.stream(text="Hello.", format="pcm", speed=2.0, config=config))


def test_the_sdk_speaks_with_a_recording(client, a_recording):
    config = TTSConfig(format="pcm", temperature=0.0, max_new_tokens=6)
    plain = client.tts.convert(text="Hello.", config=config)
    cloned = client.tts.convert(text="Hello.", config=config, references=[ReferenceAudio(audio=a_recording, text="a")])
    assert len(plain) == len(cloned)
    assert plain != cloned


def test_the_sdk_streams_text_in_and_sound_out(client):
    config = TTSConfig(format="wav", max_new_tokens=6)
    file = b"".join(client.tts.stream_websocket(iter([*WORDS, FlushEvent(), "Good."]), config=config))
    assert duration_s(file) > 3 * 2048 / 44_100


async def test_the_async_sdk_streams_text_in_and_sound_out(engine):
    async def words():
        for word in WORDS:
            yield word

    async with AsyncFishAudio(api_key="any", base_url=engine.url) as client:
        config = TTSConfig(max_new_tokens=6)
        file = b"".join([chunk async for chunk in client.tts.stream_websocket(words(), config=config)])
    assert duration_s(file) > 2 * 2048 / 44_100


def test_the_legacy_sdk_speaks_and_streams(engine):
    request = fish_audio_sdk.TTSRequest(text="Hello.", format="mp3", temperature=0.0)
    with fish_audio_sdk.Session("any", base_url=engine.url) as session:
        assert duration_s(b"".join(session.tts(request))) > 0
    with fish_audio_sdk.WebSocketSession("any", base_url=engine.url) as session:
        live = fish_audio_sdk.TTSRequest(text="", format="pcm", temperature=0.0)
        assert len(b"".join(session.tts(live, iter(["Hello."])))) > 4096


def test_the_sdks_show_what_was_wrong(client, engine):
    with pytest.raises(APIError, match="sample_rate of mp3: 8000 is not supported") as refusal:
        client.tts.convert(text="Hello.", config=TTSConfig(sample_rate=8000))
    assert refusal.value.status == 400
    with fish_audio_sdk.Session("any", base_url=engine.url) as session, pytest.raises(fish_audio_sdk.HttpCodeErr):
        list(session.tts(fish_audio_sdk.TTSRequest(text="")))


def test_the_sdk_is_told_when_the_engine_is_full(start_engine, eventually):
    engine = start_engine("127.43.0.5", max_streams=1, max_queued=0)
    leave = threading.Event()

    def occupy():
        with engine.client.stream("POST", "/v1/tts", json={"text": "Hello.", "seed": LONG_SEED}) as response:
            next(response.iter_raw())
            leave.wait(60)

    listener = threading.Thread(target=occupy)
    listener.start()
    client = FishAudio(api_key="any", base_url=engine.url)
    with pytest.raises(InvalidStatus) as refusal:
        eventually(lambda: _attempt(engine))
    with pytest.raises(RateLimitError):
        client.tts.convert(text="Hello.")
    leave.set()
    listener.join()
    assert refusal.value.response.status_code == 429
    assert int(refusal.value.response.headers["retry-after"]) >= 1


def _attempt(engine):
    with connect(live_url(engine)):
        return False


def live_url(engine):
    return engine.url.replace("http", "ws") + "/v1/tts/live"


def packed(event, **fields):
    return ormsgpack.packb({"event": event, **fields})


def start(**request):
    return packed("start", request={"text": "", "format": "pcm", "temperature": 0, "max_new_tokens": 8, **request})


def heard(socket):
    """Return the sound of a session, and how it ended."""
    sound = b""
    while (message := ormsgpack.unpackb(socket.recv(60)))["event"] == "audio":
        assert len(message["audio"]) < 65_000
        sound += message["audio"]
    return sound, message


def test_a_socket_serves_one_session_after_another(engine):
    with connect(live_url(engine)) as socket:
        sounds = []
        for _ in range(2):
            for frame in (start(unknown=1), packed("text", text="Hello.", extra=2), packed("later"), packed("stop")):
                socket.send(frame)
            sound, end = heard(socket)
            assert end == {"event": "finish", "reason": "stop"}
            sounds.append(sound)
    assert len(sounds[0]) == 8 * 4096
    assert sounds[0] == sounds[1] == engine.speak(text="Hello.", temperature=0, max_new_tokens=8).content


def test_a_flush_says_what_there_is_and_more_may_follow(engine):
    with connect(live_url(engine)) as socket:
        for frame in (start(), packed("flush"), packed("text", text="Hello"), packed("flush")):
            socket.send(frame)
        assert ormsgpack.unpackb(socket.recv(60))["event"] == "audio"
        socket.send(packed("text", text="and more"))
        socket.send(packed("stop"))
        sound, end = heard(socket)
    assert end["reason"] == "stop"
    assert len(sound) > 8 * 4096


def test_a_complete_sentence_is_said_before_anybody_asks_for_it(engine):
    with connect(live_url(engine)) as socket:
        socket.send(start())
        socket.send(packed("text", text="Hello there. And"))
        assert ormsgpack.unpackb(socket.recv(60))["event"] == "audio"


def test_nothing_to_say_is_a_session_without_sound_and_no_error(engine):
    with connect(live_url(engine)) as socket:
        for frame in (start(format="mp3"), packed("text", text=" …! 🎉 "), packed("flush"), packed("stop")):
            socket.send(frame)
        assert heard(socket) == (b"", {"event": "finish", "reason": "stop"})


@pytest.mark.parametrize(
    ("frames", "complaint", "code"),
    [
        ([packed("text", text="Hello.")], "text came before start", 1008),
        ([start(), start()], "start came twice", 1008),
        ([start(temperature=2)], "temperature: expected less than or equal to 1, found 2", 1008),
        ([start(sample_rate=22050)], "sample_rate of pcm: 22050 is not supported", 1008),
        ([packed("start")], "start: expected the field request", 1008),
        ([start(), packed("text", text=7)], "expected the field text with a string, found int", 1008),
        ([start(), packed("text", text="a" * 20_001)], "text has 20001 characters", 1008),
        ([start(), ormsgpack.packb({"event": 1})], "expected the field event", 1008),
        ([b"\x81\xa5eve"], "is not msgpack", 1007),
        ([ormsgpack.packb([1])], "expected a msgpack map, found list", 1007),
        (["start"], "found a text frame", 1007),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_mistake_ends_with_finish_error_and_a_close(engine, frames, complaint, code):
    with connect(live_url(engine)) as socket:
        for frame in frames:
            socket.send(frame)
        sound, end = heard(socket)
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(60)
    assert (sound, end["event"], end["reason"]) == (b"", "finish", "error")
    assert complaint in end["message"]
    assert closed.value.rcvd.code == code


def test_no_frame_whatsoever_breaks_the_engine(engine):
    rng = random.Random(0)
    frames = [start(), packed("text", text="Hello."), packed("flush"), packed("stop"), ormsgpack.packb({"event": None})]
    for _ in range(150):
        with connect(live_url(engine), close_timeout=1) as socket:
            socket.send(start(max_new_tokens=1))
            for _ in range(3):
                frame = bytearray(rng.choice(frames))
                for _ in range(rng.randint(1, 4)):
                    frame[rng.randrange(len(frame))] = rng.randrange(256)
                with contextlib.suppress(ConnectionClosed):
                    socket.send(bytes(frame))
            with contextlib.suppress(ConnectionClosed):
                socket.send(packed("stop"))
            assert heard(socket)[1]["event"] == "finish"
    assert engine.client.get("/v1/health").status_code == 200
    assert engine.metrics().get(("fish_tts_rejected_total", "failed"), 0) == 0


def test_a_client_that_leaves_frees_its_place_at_once(engine, eventually):
    with connect(live_url(engine)) as socket:
        for frame in (start(max_new_tokens=400, seed=LONG_SEED, temperature=0.7), packed("text", text="Hello. And")):
            socket.send(frame)
        assert ormsgpack.unpackb(socket.recv(60))["event"] == "audio"
        assert engine.load().active_streams == 1
    eventually(lambda: engine.load().active_streams == 0, within_s=5)
    eventually(lambda: engine.metrics()["fish_tts_kv_blocks_used",] == 0, within_s=5)


async def test_many_sockets_at_once_each_hear_their_own_text(engine):
    async def listen(text):
        async with connect_later(live_url(engine)) as socket:
            for frame in (start(), packed("text", text=text), packed("stop")):
                await socket.send(frame)
            sound = b""
            while (message := ormsgpack.unpackb(await socket.recv()))["event"] == "audio":
                sound += message["audio"]
            return sound

    texts = [f"Number {index}." for index in range(6)]
    sounds = await asyncio.gather(*map(listen, texts))
    alone = [engine.speak(text=text, temperature=0, max_new_tokens=8).content for text in texts]
    assert sounds == alone


def test_a_drain_lets_a_session_finish(start_engine):
    engine = start_engine("127.43.0.6", max_streams=1)
    with connect(live_url(engine)) as socket:
        for frame in (
            start(max_new_tokens=60, seed=LONG_SEED, temperature=0.7),
            packed("text", text="Hello."),
            packed("stop"),
        ):
            socket.send(frame)
        first = ormsgpack.unpackb(socket.recv(60))["audio"]
        os.kill(engine.process.pid, signal.SIGTERM)
        sound, end = heard(socket)
    assert end["reason"] == "stop"
    assert len(first + sound) == 60 * 4096
    assert engine.process.wait(30) == 0
