"""The demo as a newcomer runs it, from an empty state folder: every promise of its report holds."""

import json
import subprocess
import sys
import wave
from pathlib import Path

import pytest

DEMO_TIMEOUT_S = 540


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory):
    """Play the demo once and yield its folder."""
    root = tmp_path_factory.mktemp("demo")
    fish_local = [sys.executable, "-m", "fish_local"]
    state = ["--state", str(root / "state")]
    try:
        played = subprocess.run(
            [*fish_local, "demo", *state, "--output", str(root / "demo")],
            capture_output=True,
            text=True,
            check=False,
            timeout=DEMO_TIMEOUT_S,
        )
        print(played.stdout, played.stderr)
        assert played.returncode == 0, played.stdout[-4000:] + played.stderr
        yield root / "demo"
    finally:
        subprocess.run([*fish_local, "down", *state], check=True, capture_output=True)


pytestmark = pytest.mark.timeout(DEMO_TIMEOUT_S + 60)


@pytest.fixture(scope="module")
def report(results: Path):
    return json.loads((results / "report.json").read_text())


def test_traffic_takes_gpus_from_cleaning_and_gives_them_back(report):
    assert report["scale_ups"] >= 2
    assert report["scale_downs"] >= 1
    assert 2 <= report["evictions"] <= report["reclaims"]


def test_no_stream_is_cut_and_no_item_lost_or_doubled(report):
    assert report["streams_total"] > 0
    assert report["streams_cut"] == report["items_lost"] == report["items_doubled"] == 0
    assert report["items_committed"] + report["items_rejected"] == report["items_expected"] > 0


def test_every_gpu_second_is_in_one_state(report):
    watched_s = sum(report["stage_s"][stage] for stage in ("first_engine", "wave", "finish"))
    total_s = sum(report["gpu_state_seconds"].values())
    # The operator counts from the demo's first reading to its last: four GPUs for as long as the play took.
    assert total_s == pytest.approx(4 * watched_s, rel=0.1)


def test_the_speech_is_a_whole_wav_file(results):
    with wave.open(str(results / "speech.wav")) as speech:
        assert (speech.getframerate(), speech.getnchannels()) == (44_100, 1)
        assert speech.getnframes() == len(speech.readframes(10**9)) // 2 > 0


def test_there_is_a_picture_of_the_run(results):
    assert "<svg" in (results / "gpus.svg").read_text()
