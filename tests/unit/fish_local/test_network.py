import socket

import pytest

from fish_local.errors import PortTaken
from fish_local.network import (
    PREFERRED_PORTS,
    Listener,
    choose_network,
    listeners_of_this_machine,
    moved_ports,
    parsed_tcp_table,
)

TCP = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0000000000000000 100 0 0 10 0
   1: 0100007F:1F91 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 4712 1 0000000000000000 100 0 0 10 0
"""
TCP6 = """\
  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000000000000:192B 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 99 1 0000000000000000 100 0 0 10 0
   1: 0000000000000000FFFF00000100107F:0050 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 98 1 0000000000000000 100 0 0 10 0
"""


def listener(address: str, port: int) -> Listener:
    return Listener(address=address, port=port, inode=0)


def test_only_listening_sockets_are_read_from_the_kernels_table() -> None:
    assert parsed_tcp_table(TCP) == [Listener(address="127.0.0.1", port=8080, inode=4711)]


def test_addresses_of_version_6_and_mapped_ones_are_read() -> None:
    assert [(found.address, found.port) for found in parsed_tcp_table(TCP6)] == [("::", 6443), ("127.16.0.1", 80)]


def test_a_socket_that_listens_now_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert ("127.0.0.1", port) in [(found.address, found.port) for found in listeners_of_this_machine()]


def test_the_same_folder_gets_the_same_block_again() -> None:
    assert choose_network([], seed="/a") == choose_network([], seed="/a")


def test_a_block_in_which_somebody_listens_is_left_to_them() -> None:
    first = choose_network([], seed="/a")
    second = choose_network([listener(first.host, 6443)], seed="/a")
    assert second.block != first.block


def test_ports_are_the_usual_ones_when_nobody_has_them() -> None:
    network = choose_network([listener("127.0.0.1", 6443)], seed="/a")
    assert dict(network.ports) == PREFERRED_PORTS
    assert moved_ports(network) == []


@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_a_port_that_is_taken_on_every_address_is_avoided_and_told(address: str) -> None:
    network = choose_network([listener(address, 6443)], seed="/a")
    assert network.ports["kube-apiserver"] == 7443
    assert moved_ports(network) == ["kube-apiserver: port 6443 is taken on every address, using 7443"]


@pytest.mark.parametrize("port", [8080, 9090])
def test_a_taken_port_that_all_pods_need_is_refused_with_its_number(port: int) -> None:
    with pytest.raises(PortTaken, match=f"port {port} is taken on every address"):
        choose_network([listener("0.0.0.0", port)], seed="/a")


def test_the_process_that_has_a_port_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        mine = next(found for found in listeners_of_this_machine() if found.port == server.getsockname()[1])
        taken = Listener(address="0.0.0.0", port=8080, inode=mine.inode)
        with pytest.raises(PortTaken, match=r"by \S+ \(process \d+\)"):
            choose_network([taken], seed="/a")


def test_no_block_left_is_said() -> None:
    everywhere = [listener(f"127.{block}.0.1", 1) for block in range(256)]
    with pytest.raises(PortTaken, match="each of the"):
        choose_network(everywhere, seed="/a")


def test_pods_of_two_nodes_have_different_addresses() -> None:
    network = choose_network([], seed="/a")
    assert network.pod_cidr(0) != network.pod_cidr(1)
    assert network.node_host(0) != network.node_host(1)
