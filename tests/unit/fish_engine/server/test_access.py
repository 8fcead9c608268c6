"""Nobody on the internet speaks without a key, and every way that clients bring one is understood."""

import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from fish_engine.errors import ExposedWithoutKeys, Unauthorized
from fish_engine.server.access import KeyGate, SingleSlashes, check_exposure, read_keys


@pytest.fixture(scope="module")
def client():
    return TestClient(SingleSlashes(KeyGate(PlainTextResponse("in"), ["secret"])))


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ({"authorization": "Bearer secret"}, ""),
        ({"authorization": "token secret"}, ""),
        ({"xi-api-key": "secret"}, ""),
        ({}, "?api_key=secret"),
    ],
)
def test_a_key_is_taken_from_wherever_a_client_puts_it(client, headers, query):
    assert client.get(f"/v1/tts{query}", headers=headers).text == "in"


@pytest.mark.parametrize(
    "headers", [{}, {"authorization": "Bearer other"}, {"authorization": "secret"}, {"xi-api-key": ""}]
)
def test_without_a_key_that_fits_nobody_gets_in(client, headers):
    answer = client.post("/v1/tts", headers=headers)
    assert answer.status_code == 401
    assert set(answer.json()) == {"status", "message"}
    assert client.post("//v1/tts", headers=headers).status_code == 401
    assert client.post("/v1/audio/speech", headers=headers).json()["error"]["code"] == 401


@pytest.mark.parametrize("path", ["/v1/health", "/health/ready", "/v1/load"])
def test_probes_and_the_operator_need_no_key(client, path):
    assert client.get(path).text == "in"


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "127.43.0.1", "::1", "10.0.3.4", "192.168.1.2", "100.64.0.9", "fe80::1%eth0"]
)
def test_a_private_address_needs_no_keys(address):
    check_exposure(address, has_keys=False)


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "8.8.8.8", "2606:4700::1"])
def test_an_address_for_everybody_needs_keys(address):
    check_exposure(address, has_keys=True)
    with pytest.raises(ExposedWithoutKeys, match="give --api-keys-file"):
        check_exposure(address, has_keys=False)


def test_a_file_of_keys_has_one_a_line_and_at_least_one(tmp_path):
    file = tmp_path / "keys"
    file.write_text("# ours\n\n one \ntwo\n")
    assert read_keys(file) == {"one", "two"}
    file.write_text("# none\n")
    with pytest.raises(Unauthorized, match="has no keys"):
        read_keys(file)
