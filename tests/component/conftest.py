"""An engine as its users meet it: a process. One is shared by all tests that leave it as they found it."""

import io
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
import pytest
import soundfile
from prometheus_client.parser import text_string_to_metric_families

from fish_contracts.reports import LoadReport

GOLDEN = Path(__file__).parents[1] / "golden"
TEXT = "Hello there, how are you?"


@dataclass
class EngineProcess:
    """A running engine."""

    process: subprocess.Popen[str]
    client: httpx.Client
    metrics_url: str
    welcome: str

    @property
    def url(self) -> str:
        return str(self.client.base_url)

    def speak(self, **fields: object) -> httpx.Response:
        return self.client.post("/v1/tts", json={"text": TEXT, "format": "pcm", **fields})

    def load(self) -> LoadReport:
        return LoadReport.from_json(self.client.get("/v1/load").content)

    def metrics(self) -> dict[tuple[str, ...], float]:
        families = text_string_to_metric_families(httpx.get(self.metrics_url).text)
        return {
            (sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples
        }


@pytest.fixture(scope="session")
def engine_command() -> Callable[..., list[str]]:
    """Return a function that writes the command line of `serve`."""

    def command(**options: object) -> list[str]:
        flags = [part for name, value in options.items() for part in (f"--{name.replace('_', '-')}", str(value))]
        return [sys.executable, "-m", "fish_engine", "serve", *flags]

    return command


@pytest.fixture(scope="session")
def start_engine(engine_command: Callable[..., list[str]]) -> Iterator[Callable[..., EngineProcess]]:
    """Return a function that starts an engine on the tiny checkpoint and waits until it is ready."""
    started = []

    def start(host: str, **options: object) -> EngineProcess:
        port, metrics_port = _free_port(host), _free_port(host)
        ports = {"host": host, "port": port, "metrics_port": metrics_port}
        arguments = engine_command(checkpoint=GOLDEN / "s2_tiny", codec=GOLDEN / "codec_tiny", **ports, **options)
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        process = subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, env=environment)
        started.append(process)
        line = process.stderr.readline()
        assert line.startswith("serving "), line + process.stderr.read()
        assert "random weights" in line
        client = httpx.Client(base_url=f"http://{host}:{port}", timeout=120)
        metrics_url = f"http://{host}:{metrics_port}/metrics"
        return EngineProcess(process=process, client=client, metrics_url=metrics_url, welcome=line)

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture(scope="session")
def engine(start_engine: Callable[..., EngineProcess]) -> EngineProcess:
    """Return an engine for eight streams at once."""
    return start_engine("127.43.0.1", max_streams=8)


def _free_port(host: str) -> int:
    with socket.create_server((host, 0)) as listener:
        return listener.getsockname()[1]


@pytest.fixture(scope="session")
def a_recording() -> bytes:
    """Return a second of noise as a WAV file."""
    rng = np.random.default_rng(0)
    file = io.BytesIO()
    soundfile.write(file, rng.normal(0, 0.1, 22_050), 22_050, format="WAV")
    return file.getvalue()
