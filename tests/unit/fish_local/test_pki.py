import ssl
import threading
from pathlib import Path
from socket import create_connection, create_server

import pytest

from fish_local import pki


def test_a_client_that_trusts_the_authority_accepts_the_server(tmp_path: Path) -> None:
    made = pki.create(tmp_path / "pki", addresses=["127.0.0.1"])
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=made.authority)
    serving.load_cert_chain(made.server, made.server_key)
    serving.verify_mode = ssl.CERT_REQUIRED
    asking = ssl.create_default_context(cafile=made.authority)
    asking.load_cert_chain(made.client, made.client_key)
    asking.verify_flags |= ssl.VERIFY_X509_STRICT  # what Python 3.13 insists on
    with create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with serving.wrap_socket(connection, server_side=True) as secure:
                secure.sendall(b"hello")

        thread = threading.Thread(target=answer)
        thread.start()
        with asking.wrap_socket(create_connection(server.getsockname()), server_hostname="127.0.0.1") as connection:
            assert connection.recv(5) == b"hello"
        thread.join()


@pytest.mark.parametrize("name", ["server.key", "client.key", "service-account.key"])
def test_keys_can_be_read_by_their_owner_only(tmp_path: Path, name: str) -> None:
    pki.create(tmp_path / "pki", addresses=[])
    assert (tmp_path / "pki" / name).stat().st_mode & 0o077 == 0
