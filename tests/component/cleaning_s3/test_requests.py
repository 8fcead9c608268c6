"""The store's promises and a worker's manners against a real server, with and without faults on the way."""

import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fish_cleaning.errors import StoreFailed
from fish_cleaning.object_storage import Patience
from fish_contracts.reports import ProgressReport

REPOSITORY = Path(__file__).parents[3]
PREEMPTED = 75


@contextmanager
def killed_at_the_end(worker: "subprocess.Popen[bytes]") -> Iterator[None]:
    try:
        yield
    finally:
        worker.kill()
        worker.wait(timeout=30)


def wait_until(is_so: Callable[[], bool], *, timeout_s: float = 60.0) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not is_so():
        assert time.monotonic() < deadline_s, "the condition did not come true in time"
        time.sleep(0.02)


@pytest.mark.parametrize("rates", [{}, {"refused": 0.05, "broken": 0.05, "lost": 0.05}])
def test_the_server_keeps_the_promises_of_a_store(
    s3_server: Any, faulty_proxy: Callable[..., Any], rates: dict[str, float]
) -> None:
    endpoint = faulty_proxy(**rates).endpoint if rates else s3_server.endpoint
    environment = s3_server.environment(endpoint=endpoint) | {"FISH_TEST_STORE": "s3://clips/promises"}
    command = [sys.executable, "-m", "pytest", "-q", "-k", "server", "tests/unit/fish_cleaning/test_store.py"]
    ran = subprocess.run(command, env=environment, cwd=REPOSITORY, capture_output=True, check=False, text=True)
    assert ran.returncode == 0, ran.stdout
    assert "11 passed" in ran.stdout


def test_a_lost_reply_is_no_lost_race(s3_server: Any, faulty_proxy: Callable[..., Any]) -> None:
    """Half of all replies never come: without reading back, the repeat of a create would find its own object and call it a loss."""
    proxy = faulty_proxy(lost=0.3, broken=0.2)
    patience = Patience(first_pause_s=0.005, longest_pause_s=0.05)
    mine = s3_server.bucket("races", endpoint=proxy.endpoint, patience=patience)
    other = s3_server.bucket("races", endpoint=s3_server.endpoint)
    assert all(mine.create(f"{number}", b"mine") for number in range(20))
    assert not any(mine.create(f"{number}", b"other") for number in range(20))
    assert {other.get(f"{number}").data for number in range(20)} == {b"mine"}
    assert proxy.failures() > 10, "hardly any fault happened"


def test_patience_with_a_silent_server_ends_with_words(s3_server: Any, faulty_proxy: Callable[..., Any]) -> None:
    proxy = faulty_proxy(stuck=1.0)
    patience = Patience(total_s=1.0, attempt_s=0.3)
    silent = s3_server.bucket("silent", endpoint=proxy.endpoint, patience=patience)
    began_at_s = time.monotonic()
    with pytest.raises(StoreFailed, match=r"s3://clips/silent/a: no answer in time; .* start again to continue"):
        silent.create("a", b"")
    assert time.monotonic() - began_at_s < 3.0


def test_a_stop_waits_for_no_network_and_progress_is_told_without_it(
    s3_job: Callable[..., Any], faulty_proxy: Callable[..., Any]
) -> None:
    proxy = faulty_proxy()
    job = s3_job(items=40, endpoint=proxy.endpoint)
    host = job.server.host
    worker = job.start_worker("--max-speed", "5", "--host", host, "--port", "7080", "--metrics-port", "7090")

    def progress() -> ProgressReport:
        with urllib.request.urlopen(f"http://{host}:7080/v1/progress", timeout=3.0) as answer:
            return ProgressReport.from_json(answer.read())

    with killed_at_the_end(worker):
        wait_until(lambda: len(job.names("commits")) > 0)
        wait_until(lambda: progress().units_committed > 0)
        proxy.fail(stuck=1.0)
        wait_until(lambda: proxy.failures() > 0)
        assert progress().units_committed > 0
        told_at_s = time.monotonic()
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(timeout=30) == PREEMPTED
        assert time.monotonic() - told_at_s <= 1.0


@pytest.mark.parametrize(
    ("output", "changes", "exit_code", "message"),
    [
        ("s3://none-of-ours/out", {"AWS_ACCESS_KEY_ID": "reader"}, 65, "s3://none-of-ours/out: no such bucket"),
        (
            "s3://clips/out",
            {"AWS_ACCESS_KEY_ID": "reader"},
            65,
            "AccessDenied; expected a key that may list, read and write",
        ),
        ("s3://clips/out", {"AWS_SECRET_ACCESS_KEY": "x"}, 78, "refuses the credentials (SignatureDoesNotMatch)"),
        ("s3://clips/out", {"AWS_ENDPOINT_URL": "http://nowhere.invalid"}, 78, "the endpoint's name is not known"),
        (
            "s3://clips/out",
            {"AWS_ENDPOINT_URL": "localhost:9000"},
            78,
            "AWS_ENDPOINT_URL localhost:9000: expected http://",
        ),
        ("s3://clips/out", {"AWS_ENDPOINT_URL": "https://HOST:PORT"}, 78, "does not speak TLS"),
        ("s3://clips/out", {"AWS_ENDPOINT_URL": "http://HOST:WEB"}, 78, "no S3 server"),
    ],
)
def test_a_location_that_cannot_be_used_is_refused_in_one_line(
    s3_server: Any, output: str, changes: dict[str, str], exit_code: int, message: str
) -> None:
    places = {"HOST": s3_server.host, "PORT": str(s3_server.port), "WEB": str(s3_server.web_port)}
    told = {name: re.sub("HOST|PORT|WEB", lambda found: places[found[0]], value) for name, value in changes.items()}
    speech = REPOSITORY / "tests" / "data" / "librivox"
    command = [sys.executable, "-m", "fish_cleaning", "plan", "--input", str(speech), "--output", output]
    environment = s3_server.environment() | told
    ran = subprocess.run(command, env=environment, capture_output=True, check=False, text=True)
    assert ran.returncode == exit_code, ran.stderr
    assert message in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_an_object_that_changes_after_the_plan_is_rejected_with_the_reason(s3_job: Callable[..., Any]) -> None:
    job = s3_job(items=4)
    environment = job.server.environment()
    subprocess.run(job.command("plan"), env=environment, check=True, stdout=subprocess.DEVNULL)
    source = job.server.bucket(f"{job.name}/in", endpoint=job.server.endpoint)
    changed = next(name for name in source.folder("") if name.endswith((".wav", ".flac")))
    source.put(changed, b"something else")
    assert job.start_worker().wait(timeout=60) == 0
    commits = [source_of.data for source_of in _commits(job)]
    assert any(b'"reason": "changed"' in commit for commit in commits)


def _commits(job: Any) -> list[Any]:
    output = job.server.bucket(f"{job.name}/out", endpoint=job.server.endpoint)
    return output.get_all(f"commits/{name}" for name in output.folder("commits"))
