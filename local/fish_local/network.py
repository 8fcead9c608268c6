"""Chooses the addresses and ports of a cluster.

Each cluster takes a block 127.X.0.0/16 of its own: its control plane on 127.X.0.1, node N on 127.X.0.(10+N) with pods in
127.X.(10+N).0/24. Blocks instead of free ports, since every pod listens on the same ports, and ports outside the range
that the kernel hands to outgoing connections, so that a component that is started again finds its port free.
"""

import ipaddress
import re
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fish_contracts.reports import HTTP_PORT, METRICS_PORT
from fish_local.errors import PortTaken

MAX_NODES: Final = 100
_FIRST_NODE: Final = 10
_BLOCKS: Final = range(16, 240)
_PORT_STEP: Final = 1000
_LAST_PORT: Final = 32767
"""The kernel takes source ports of outgoing connections from above this."""

PREFERRED_PORTS: Final = {
    "etcd": 2379,
    "etcd-peer": 2380,
    "etcd-metrics": 2381,
    "kube-apiserver": 6443,
    "kube-controller-manager": 10257,
    "kube-scheduler": 10259,
    "kubelet": 10250,
}
POD_PORTS: Final = (HTTP_PORT, METRICS_PORT)

_LISTEN_STATE: Final = "0A"
_ANY: Final = frozenset({"0.0.0.0", "::"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """A listening TCP socket on this machine."""

    address: str
    port: int
    inode: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The addresses and ports of one cluster."""

    block: int
    ports: Mapping[str, int]

    @property
    def host(self) -> str:
        """Where the control plane listens."""
        return f"127.{self.block}.0.1"

    @property
    def api_server(self) -> str:
        """The API server's URL."""
        return f"https://{self.host}:{self.ports['kube-apiserver']}"

    def node_host(self, index: int) -> str:
        """Where the node answers the API server, for logs."""
        return f"127.{self.block}.0.{_FIRST_NODE + index}"

    def pod_cidr(self, index: int) -> str:
        """The addresses of a node's pods."""
        return f"127.{self.block}.{_FIRST_NODE + index}.0/24"


def choose_network(listeners: Iterable[Listener], *, seed: str) -> Network:
    """Choose a block in which nobody listens, the same for the same seed if it can be, and ports that are free in it.

    Raises:
        PortTaken: the ports that all pods listen on are taken on every address of the machine.
    """
    listeners = list(listeners)
    wildcard_ports = {listener.port: listener for listener in listeners if listener.address in _ANY}
    for port in POD_PORTS:
        if port in wildcard_ports:
            raise PortTaken(
                f"port {port} is taken on every address of this machine{_owner(wildcard_ports[port])}; "
                f"pods listen there, each on an address of its own: stop that process, or bind it to 127.0.0.1"
            )
    used_blocks = {_block(listener.address) for listener in listeners}
    start = zlib.crc32(seed.encode()) % len(_BLOCKS)
    order = [*_BLOCKS[start:], *_BLOCKS[:start]]
    block = next((block for block in order if block not in used_blocks), None)
    if block is None:
        raise PortTaken(f"somebody listens in each of the {len(_BLOCKS)} blocks 127.{_BLOCKS[0]}-{_BLOCKS[-1]}.0.0/16")
    ports = {name: _free_port(name, port, wildcard_ports) for name, port in PREFERRED_PORTS.items()}
    return Network(block=block, ports=ports)


def moved_ports(network: Network) -> list[str]:
    """Say, for people, which ports are not the usual ones."""
    return [
        f"{name}: port {PREFERRED_PORTS[name]} is taken on every address, using {port}"
        for name, port in network.ports.items()
        if port != PREFERRED_PORTS[name]
    ]


def listeners_of_this_machine() -> list[Listener]:
    """Return all listening TCP sockets, of whichever user."""
    tables = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))  # tcp6 is absent where IPv6 is switched off
    return [listener for table in tables if table.exists() for listener in parsed_tcp_table(table.read_text())]


def parsed_tcp_table(text: str) -> list[Listener]:
    """Read the listening sockets out of /proc/net/tcp or tcp6: hexadecimal addresses in the machine's byte order."""
    found = []
    for line in text.splitlines()[1:]:
        fields = line.split()
        if fields[3] != _LISTEN_STATE:
            continue
        address, _, port = fields[1].partition(":")
        found.append(Listener(address=_address(address), port=int(port, 16), inode=int(fields[9])))
    return found


def _address(text: str) -> str:
    # Little-endian words of four bytes each.
    packed = b"".join(bytes.fromhex(text[at : at + 8])[::-1] for at in range(0, len(text), 8))
    address = ipaddress.ip_address(packed)
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def _block(address: str) -> int | None:
    match = re.fullmatch(r"127\.(\d+)\.\d+\.\d+", address)
    return int(match[1]) if match else None


def _free_port(name: str, preferred: int, taken: Mapping[int, Listener]) -> int:
    port = next((port for port in range(preferred, _LAST_PORT, _PORT_STEP) if port not in taken), None)
    if port is None:
        raise PortTaken(f"{name}: port {preferred} and every {_PORT_STEP}th after it are taken on every address")
    return port


def _owner(listener: Listener) -> str:
    """Return " by NAME (process PID)", or nothing when the process belongs to somebody else."""
    wanted = f"socket:[{listener.inode}]"
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):  # another user's, or closed meanwhile
            if str(link.readlink()) == wanted:
                process = link.parents[1]
                return f" by {(process / 'comm').read_text().strip()} (process {process.name})"
    return ""
