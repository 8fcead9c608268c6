"""What tests of several rooms share: one real cluster for the whole run, and waiting for things instead of sleeping."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rich.console import Console

from fish_local import build
from fish_local.cluster import Cluster
from fish_local.progress import narrator
from fish_local.shape import ImageCommand

TEST_IMAGES = {"test/python": ImageCommand(command=(sys.executable,))}
_STARTS_CLUSTERS = {"cluster", "fish_local"}
"""Fixtures that need the cluster's programs."""
_POLL_S = 0.05


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build the cluster's programs before the first test, where no test's time limit counts: they take minutes once."""
    wanted = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    if wanted & _STARTS_CLUSTERS and not session.config.option.collectonly:
        with narrator(Console(stderr=True)) as tell:
            build.ensure_built(tell)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Return a real control plane with two nodes of two GPUs, shared by all tests; `test/python` is this interpreter."""
    running = Cluster.start(tmp_path_factory.mktemp("cluster"), images=TEST_IMAGES)
    yield running
    running.stop()


@pytest.fixture
def namespace(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """Return a namespace of the test's own; its pods are gone when the test is over."""
    name = f"test-{abs(hash(request.node.nodeid)):x}"[:40]
    cluster.kubectl("create", "namespace", name)
    cluster.kubectl("wait", "--for=create", "serviceaccount/default", "--namespace", name)  # pods are refused without
    yield name
    cluster.kubectl("delete", "pod", "--all", "--namespace", name, "--grace-period=0", "--force")
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def eventually() -> Callable[..., Any]:
    """Return a function that waits until a condition holds and returns its value."""

    def wait(condition: Callable[[], Any], *, within_s: float = 30.0) -> Any:
        deadline_s = time.monotonic() + within_s
        while not (value := condition()):
            assert time.monotonic() < deadline_s, f"still {value!r} after {within_s} s"
            time.sleep(_POLL_S)
        return value

    return wait


@pytest.fixture
def get(cluster: Cluster) -> Callable[..., Any]:
    """Return a function that reads objects of the cluster as JSON."""

    def read(*arguments: str) -> Any:
        return json.loads(cluster.kubectl("get", *arguments, "-o", "json"))

    return read
