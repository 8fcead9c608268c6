"""The engine as its users meet it: a process that speaks HTTP."""

import io
import signal
import socket
import struct
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import ormsgpack
import pytest
import soundfile
from prometheus_client.parser import text_string_to_metric_families

from fish_contracts.exit_codes import ExitCode
from fish_contracts.metrics import all_families
from fish_contracts.reports import LoadReport

GOLDEN = Path(__file__).parents[1] / "golden"
MODEL, CODEC = GOLDEN / "s2_tiny", GOLDEN / "codec_tiny"
TEXT = "Hello there, how are you?"
LONG_SEED = 3  # with these random weights this seed speaks until the frame limit
FRAME_BYTES = 2 * 2048


@pytest.fixture(scope="module")
def server(engine):
    assert engine.client.get("/v1/health").json() == {"status": "ok"}
    return engine


def test_sound_arrives_while_the_rest_is_still_being_made(server):
    body = {"text": TEXT, "format": "wav", "seed": LONG_SEED, "max_new_tokens": 80}
    with server.client.stream("POST", "/v1/tts", json=body) as response:
        assert response.status_code == 200
        assert response.headers["content-type"] == "audio/wav"
        chunks = response.iter_raw()
        first = next(chunks)
        with httpx.Client(base_url=server.client.base_url) as other:
            load = LoadReport.from_json(other.get("/v1/load").content)
        rest = b"".join(chunks)
    assert load.active_streams == 1
    assert first.startswith(b"RIFF")
    assert len(first) < len(rest)


def test_streams_advance_in_one_batch_and_each_sounds_as_if_it_were_alone(server):
    seeds = range(6)
    alone = [server.speak(seed=seed, max_new_tokens=24).content for seed in seeds]
    with ThreadPoolExecutor(len(seeds)) as pool:
        together = list(pool.map(lambda seed: server.speak(seed=seed, max_new_tokens=24).content, seeds))
    assert together == alone
    assert len(set(together)) == len(seeds)
    batches = server.metrics()
    assert batches["fish_tts_batch_size_count",] > batches["fish_tts_batch_size_bucket", "1.0"]


def test_json_msgpack_stream_and_buffer_carry_the_same_samples(server):
    fields = {"text": TEXT, "format": "wav", "temperature": 0, "max_new_tokens": 20, "references": None, "unknown": 1}
    streamed = server.client.post("/v1/tts", json=fields).content
    packed = server.client.post(
        "/v1/tts", content=ormsgpack.packb(fields), headers={"content-type": "application/msgpack", "model": "s2-pro"}
    ).content
    whole = server.client.post("/v1/tts", json={**fields, "streaming": False})
    assert streamed == packed
    assert streamed[44:] == whole.content[44:] == server.speak(temperature=0, max_new_tokens=20).content
    assert int(whole.headers["content-length"]) == len(whole.content)
    samples, rate_hz = soundfile.read(io.BytesIO(whole.content))
    assert rate_hz == 44_100
    assert len(samples) == 20 * 2048
    assert struct.unpack_from("<I", streamed, 40)[0] == 0xFFFFFF00


def test_every_format_plays_as_long_as_the_samples_that_went_into_it(server):
    fields = {"text": TEXT, "temperature": 0, "max_new_tokens": 20, "prosody": {"speed": 2}}
    expected_s = len(server.speak(**fields).content) / 2 / 44_100
    for name, media_type in (
        ("mp3", "audio/mpeg"),
        ("opus", "audio/ogg"),
        (None, "audio/mpeg"),
    ):
        response = server.client.post("/v1/tts", json={**fields, "format": name})
        assert response.headers["content-type"] == media_type
        assert soundfile.info(io.BytesIO(response.content)).samplerate == int(response.headers["x-sample-rate"])
        samples, rate_hz = soundfile.read(io.BytesIO(response.content))
        assert abs(len(samples) / rate_hz - expected_s) < 0.06
    telephone = server.client.post("/v1/tts", json={**fields, "format": "ulaw"})
    assert abs(len(telephone.content) / 8000 - expected_s) < 0.01


def test_volume_is_in_decibels(server):
    fields = {"temperature": 0, "max_new_tokens": 4}
    loud = np.frombuffer(server.speak(**fields).content, "<i2")
    quiet = np.frombuffer(server.speak(prosody={"volume": -20}, **fields).content, "<i2")
    assert np.abs(quiet - loud / 10).max() <= 1


def test_a_long_text_is_said_part_after_part_each_following_from_the_one_before(server):
    text = "This is one of the sentences of a long story. " * 12
    fields = {"text": text, "seed": LONG_SEED, "max_new_tokens": 6}
    before = utterances(server)
    conditioned = server.speak(**fields).content
    assert utterances(server) - before == 12  # the context of this checkpoint holds one sentence and what came before
    apart = server.speak(condition_on_previous_chunks=False, **fields).content
    assert conditioned[: 6 * FRAME_BYTES] == apart[: 6 * FRAME_BYTES]
    assert conditioned[6 * FRAME_BYTES :] != apart[6 * FRAME_BYTES :]


def utterances(server):
    return sum(value for (name, *_), value in server.metrics().items() if name == "fish_tts_finish_total")


def test_a_text_without_anything_to_say_is_a_moment_of_silence(server):
    response = server.client.post("/v1/tts", json={"text": "…! 🎉", "format": "pcm"})
    assert response.status_code == 200
    assert response.content == bytes(2 * 8820)


def test_a_reference_changes_how_it_sounds(server, a_recording):
    def speak(**fields):
        body = ormsgpack.packb({"text": TEXT, "format": "pcm", "temperature": 0, "max_new_tokens": 6, **fields})
        return server.client.post("/v1/tts", content=body, headers={"content-type": "application/msgpack"})

    cloned = speak(references=[{"audio": a_recording, "text": "noise"}])
    assert cloned.status_code == 200
    assert cloned.content != speak().content


@pytest.mark.parametrize(
    ("content", "content_type", "status", "complaint"),
    [
        (b'{"text": ""}', "application/json", 400, "text: expected some text, found none"),
        (b'{"text": " \\n"}', "application/json", 400, "text: expected some text, found none"),
        (b"{}", "application/json", 400, "text: Field required"),
        (b'{"text": 7}', "application/json", 400, "text: expected a valid string, found 7"),
        (b'{"text": "\\ud800"}', "application/json", 400, "lone surrogate"),
        (
            b'{"text": "a", "format": "mp4"}',
            "application/json",
            400,
            "'mp4' is not supported; expected one of: mp3, wav",
        ),
        (
            b'{"text": "a", "sample_rate": 22050}',
            "application/json",
            400,
            "sample_rate of mp3: 22050 is not supported; expected one of: 32000, 44100",
        ),
        (b'{"text": "a", "mp3_bitrate": 320}', "application/json", 400, "expected one of: 64000, 128000, 192000"),
        (
            b'{"text": "a", "temperature": NaN}',
            "application/json",
            400,
            "temperature: expected a finite number, found nan",
        ),
        (b'{"text": "a", "temperature": "0.5"}', "application/json", 400, "temperature: expected a valid number"),
        (b'{"text": "a", "top_p": 1.5}', "application/json", 400, "top_p: expected less than or equal to 1, found 1.5"),
        (b'{"text": "a", "max_new_tokens": 0}', "application/json", 400, "max_new_tokens: expected greater than"),
        (b'{"text": "a", "prosody": {"speed": 3}}', "application/json", 400, "prosody.speed: expected less than"),
        (b'{"text": "a", "reference_id": "bob"}', "application/json", 400, "there is no voice 'bob' here"),
        (b'{"text": "a", "references": [{"audio": "AAAA", "text": "x"}]}', "application/json", 400, "cannot be read"),
        (b"{", "application/json", 400, "the body is not application/json"),
        (b"[]", "application/json", 400, "the body must be one object"),
        (b"\x81\xa4te", "application/msgpack", 400, "the body is not application/msgpack"),
        (b"text=a", "application/x-www-form-urlencoded", 415, "is not supported; send application/json"),
        (b'{"text": "%s"}' % (b"a" * 20_001), "application/json", 400, "text has 20001 characters"),
        (b" " * (25 * 2**20 + 1), "application/json", 413, "larger than 26214400 bytes"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, bytes) else "",
)
def test_bad_input_is_refused_with_exactly_status_and_message(server, content, content_type, status, complaint):
    response = server.client.post("/v1/tts", content=content, headers={"content-type": content_type})
    assert response.status_code == status
    assert set(response.json()) == {"status", "message"}
    assert response.json()["status"] == status
    assert complaint in response.json()["message"]


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/nowhere", 404), ("GET", "/v1/tts", 405)])
def test_routes_that_do_not_exist_answer_in_the_same_shape(server, method, path, status):
    response = server.client.request(method, path)
    assert response.status_code == status
    assert set(response.json()) == {"status", "message"}


def test_a_client_that_leaves_frees_its_place(server, eventually):
    before = server.metrics().get(("fish_tts_cancelled_total", "after_audio"), 0)
    with server.client.stream("POST", "/v1/tts", json={"text": TEXT, "seed": LONG_SEED}) as response:
        next(response.iter_raw())
    eventually(lambda: server.load().active_streams == 0, within_s=5)
    metrics = server.metrics()
    assert metrics["fish_tts_cancelled_total", "after_audio"] == before + 1
    eventually(lambda: server.metrics()["fish_tts_kv_blocks_used",] == 0, within_s=5)


def test_a_storm_of_streams_of_which_many_are_cut_leaves_nothing_behind(server, eventually):
    def listen(seed):
        with server.client.stream(
            "POST", "/v1/tts", json={"text": TEXT, "seed": seed, "max_new_tokens": 12}
        ) as response:
            assert response.status_code == 200
            for _ in zip(response.iter_raw(), range(2 if seed % 3 else 1000), strict=False):
                pass

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(listen, range(48)))
    eventually(lambda: (load := server.load()).active_streams + load.queued_streams == 0)
    eventually(lambda: server.metrics()["fish_tts_kv_blocks_used",] == 0)
    assert server.client.get("/v1/health").status_code == 200


def test_every_metric_family_of_the_engine_is_served(server):
    server.speak(max_new_tokens=2)
    text = httpx.get(server.metrics_url).text
    served = {family.name for family in text_string_to_metric_families(text)}
    declared = {family.name.removesuffix("_total") for family in all_families() if family.name.startswith("fish_tts_")}
    assert declared <= served
    assert server.metrics()["fish_tts_ttfa_seconds_count", "/v1/tts"] > 0


def test_a_full_queue_turns_away_and_a_drain_lets_every_stream_end(start_engine):
    server = start_engine("127.43.0.2", max_streams=1, max_queued=2)
    fields = {"text": TEXT, "format": "pcm", "seed": LONG_SEED, "max_new_tokens": 100}
    expected = server.client.post("/v1/tts", json=fields).content
    assert len(expected) == 100 * FRAME_BYTES
    heard, first_sound = [], threading.Barrier(2)

    def listen(wait):
        with server.client.stream("POST", "/v1/tts", json=fields) as response:
            chunks = response.iter_raw()
            sound = next(chunks)
            if wait:
                first_sound.wait(60)
            heard.append(sound + b"".join(chunks))

    listeners = [threading.Thread(target=listen, args=(index == 0,)) for index in range(3)]
    listeners[0].start()
    first_sound.wait(60)
    for listener in listeners[1:]:
        listener.start()
    with httpx.Client(base_url=server.client.base_url, timeout=60) as other:
        while LoadReport.from_json(other.get("/v1/load").content).queued_streams < 2:
            assert listeners[0].is_alive()
        refused = other.post("/v1/tts", json={"text": TEXT})
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) >= 1
        server.process.send_signal(signal.SIGTERM)
        while (health := other.get("/v1/health")).status_code == 200:
            pass
        late = other.post("/v1/tts", json={"text": TEXT})
    for answer in (health, late):
        assert answer.status_code == 503
        assert set(answer.json()) == {"status", "message"}
    for listener in listeners:
        listener.join(120)
    assert heard == [expected] * 3
    assert server.process.wait(30) == ExitCode.DONE


@pytest.fixture
def run_to_its_end(engine_command):
    def run(**options):
        return subprocess.run(engine_command(**options), capture_output=True, text=True, timeout=120, check=False)

    return run


@pytest.mark.parametrize("flag", ["port", "metrics_port"])
def test_a_port_in_use_is_reported_by_number_and_flag(run_to_its_end, flag):
    with socket.create_server(("127.43.0.3", 0)) as taken:
        port = taken.getsockname()[1]
        ended = run_to_its_end(checkpoint=MODEL, codec=CODEC, host="127.43.0.3", **{flag: port})
    assert ended.returncode == ExitCode.CONFIG
    assert f"cannot listen on 127.43.0.3 port {port}" in ended.stderr
    assert f"choose another --{flag.replace('_', '-')}" in ended.stderr


@pytest.mark.parametrize(
    ("options", "status", "complaint"),
    [
        ({"checkpoint": "/nowhere", "host": "127.43.0.4"}, ExitCode.CONFIG, "/nowhere/config.json does not exist"),
        ({"checkpoint": MODEL, "host": "127.43.0.4"}, ExitCode.CONFIG, "codec.pth: no such file"),
        (
            {"checkpoint": MODEL, "max_streams": 0},
            ExitCode.USAGE,
            "max_streams: Input should be greater than or equal to 1",
        ),
        ({}, ExitCode.USAGE, "checkpoint: Field required"),
    ],
)
def test_settings_that_cannot_work_are_explained(run_to_its_end, options, status, complaint):
    ended = run_to_its_end(**options)
    assert ended.returncode == status
    assert complaint in ended.stderr
    assert "Traceback" not in ended.stderr


def test_loading_leaves_torchs_compiler_and_encoders_alone():
    """They take long to import, and stand between a new process and its first sound."""
    script = f"""
import sys
from pathlib import Path
import fish_engine.server.serve
from fish_engine.loading import EngineConfig, load_engine
from fish_engine.telemetry import EngineMetrics
config = EngineConfig(
    checkpoint=Path({str(MODEL)!r}), codec=Path({str(CODEC)!r}), max_streams=1, device="cpu", cpu_threads=1, kv_cache_gib=1
)
load_engine(config, EngineMetrics())
print(*sorted({{"torch._dynamo", "torch._inductor", "sympy", "av"}} & set(sys.modules)))
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    assert ended.stdout.strip() == ""
