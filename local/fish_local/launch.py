"""Starts the processes of a cluster, waits until they are ready, and stops them."""

import os
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from fish_local import access, pki, processes, state
from fish_local.access import ADMINISTRATOR
from fish_local.api import ApiServer
from fish_local.components import Blueprint, Component, HealthUrl, NodeObject, components
from fish_local.errors import CommandFailed, StartFailed
from fish_local.layout import Layout
from fish_local.processes import MARK, ProcessId
from fish_local.shape import CONTROL_PLANE
from fish_local.state import ClusterRecord

READY_WITHIN_S: Final = 120.0
"""Far more than a quiet machine needs: a busy one must not see a cluster given up that only starts slowly."""
_POLL_S: Final = 0.05
_PATIENCE_S: Final = 3.0
_LAST_LINES: Final = 10

_DEFAULT_ACCOUNT: Final = "/api/v1/namespaces/default/serviceaccounts/default"


def write_files(blueprint: Blueprint) -> str:
    """Write everything that the components read, except the table of images; return the administrator's token."""
    layout, network = blueprint.layout, blueprint.network
    for folder in (layout.access, layout.etcd_data, layout.logs, layout.nodes):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    hosts = [network.node_host(index) for index in range(blueprint.shape.nodes)]
    certificates = pki.create(layout.pki, addresses=["127.0.0.1", network.host, *hosts])
    known = access.identities(blueprint.shape)
    for name, identity in known.items():
        path = layout.kubeconfig if name == ADMINISTRATOR else layout.component_kubeconfig(name)
        path.touch(mode=0o600)
        path.write_text(
            access.kubeconfig(server=network.api_server, authority=certificates.authority, identity=identity)
        )
    layout.tokens.write_text(access.token_file(known))
    scheduler_access = layout.component_kubeconfig("kube-scheduler")
    layout.scheduler_config.write_text(access.scheduler_config(kubeconfig=scheduler_access))
    return known[ADMINISTRATOR].token


class Launcher:
    """Starts components of one cluster and keeps its record: each process is written down as soon as it exists."""

    def __init__(self, blueprint: Blueprint, record: ClusterRecord) -> None:
        self.record = record
        self._layout = blueprint.layout
        self._components = components(blueprint)

    def start(self, names: Iterable[str]) -> None:
        """Start components; those that wait for others do so by themselves."""
        for name in names:
            process = processes.start(
                self._components[name].argv,
                environment=_environment(self._layout),
                log=self._layout.log(name),
                folder=self._layout.root,
            )
            self.remember(replace(self.record, processes={**self.record.processes, name: process}))

    def remember(self, record: ClusterRecord) -> None:
        """Replace the record, here and in the state folder."""
        self.record = record
        state.write(self._layout.state, record)

    def wait_until_ready(self, names: Iterable[str], api: ApiServer) -> None:
        """Wait for these components.

        Raises:
            StartFailed: one ended or is not ready in time; the message has the end of its log.
        """
        for name in names:
            self._wait(name, partial(is_ready, self._components[name], api))

    def wait_until_usable(self, api: ApiServer) -> None:
        """Wait for what a fresh cluster gets last: the account whose token a node gives to a pod."""
        self._wait("kube-controller-manager", partial(api.answers, _DEFAULT_ACCOUNT))

    def _wait(self, name: str, is_done: Callable[[], bool]) -> None:
        deadline_s = time.monotonic() + READY_WITHIN_S
        while not is_done():
            if not processes.is_alive(self.record.processes[name]):
                raise StartFailed(f"{name} ended while starting.{self._end_of_log(name)}")
            if time.monotonic() > deadline_s:
                raise StartFailed(f"{name} is not ready after {READY_WITHIN_S:.0f} s.{self._end_of_log(name)}")
            time.sleep(_POLL_S)

    def _end_of_log(self, name: str) -> str:
        path = self._layout.log(name)
        lines = path.read_text(errors="replace").splitlines()[-_LAST_LINES:]
        return "\n".join([f" The end of {path}:", *lines])


def stop_everything(layout: Layout, known: Mapping[str, ProcessId]) -> list[ProcessId]:
    """Stop these components and whatever else carries the folder's mark; return what had to be killed.

    Nodes first, since they would start ended containers again; then the pods, while the API server still answers those
    that say good-bye; then the control plane from its clients down to its database.
    """
    control_plane = [known[name] for name in reversed(CONTROL_PLANE) if name in known]
    nodes = [process for name, process in known.items() if name not in CONTROL_PLANE]
    killed = processes.stop(nodes, patience_s=_PATIENCE_S)
    pods = [process for process in processes.marked(layout.root) if process not in control_plane]
    killed += processes.stop(pods, patience_s=_PATIENCE_S)
    for process in control_plane:
        killed += processes.stop([process], patience_s=_PATIENCE_S)
    # Started while the others ended, or by an `up` that was killed before it could write it down.
    return killed + processes.stop(processes.marked(layout.root), patience_s=_PATIENCE_S)


def _environment(layout: Layout) -> dict[str, str]:
    # A KUBECONFIG of the user's must not reach the processes of pods, which find their own cluster by it.
    return {key: value for key, value in os.environ.items() if key != "KUBECONFIG"} | {MARK: str(layout.root)}


def is_ready(component: Component, api: ApiServer) -> bool:
    """Tell whether a component does its work."""
    match component.readiness:
        case HealthUrl(url=url):
            return api.answers(url)
        case NodeObject(host=host, port=port):
            return _listens(host, port) and _is_node_ready(component.name, api)


def _listens(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=1.0):
            return True
    except OSError:
        return False


def _is_node_ready(name: str, api: ApiServer) -> bool:
    try:
        return any(node.name == name and node.is_ready for node in api.nodes())
    except CommandFailed:
        return False
