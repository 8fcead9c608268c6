"""A local cluster as an object: what `fish-local`, the tests and the demo drive."""

import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from rich.console import Console

from fish_local import build, processes, state, up
from fish_local.components import components
from fish_local.errors import CommandFailed, LocalError, NotRunning, UnknownName
from fish_local.layout import Layout
from fish_local.node_files import NodeFaults, pod_processes, read_faults, write_faults
from fish_local.processes import ProcessId
from fish_local.progress import LineNarrator, Narrator
from fish_local.shape import ImageCommand, Shape
from fish_local.state import Absent, ClusterRecord, Running, Stale, Wounded
from fish_local.status import ClusterStatus, read_status
from fish_local.toolchain import find_kubectl

_COMMAND_TIMEOUT_S = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The cluster in the state folder `layout.root`."""

    layout: Layout
    narrator: Narrator

    @classmethod
    def in_folder(cls, state_dir: Path, narrator: Narrator | None = None) -> Self:
        """Name the cluster of a folder, running or not; without a narrator, long work is told on standard error.

        Raises:
            LocalError: the path names a file.
        """
        if state_dir.exists() and not state_dir.is_dir():
            raise LocalError(f"{state_dir} is not a folder; the state of a cluster needs one, which is made if need be")
        return cls(
            layout=Layout(root=state_dir.resolve()),
            narrator=narrator or LineNarrator(Console(stderr=True)),
        )

    @classmethod
    def start(
        cls,
        state_dir: Path,
        *,
        shape: Shape | None = None,
        images: Mapping[str, ImageCommand] | None = None,
        narrator: Narrator | None = None,
    ) -> Self:
        """Bring a cluster up, or go on with the one that runs; `images` come on top of fish-tts' own."""
        cluster = cls.in_folder(state_dir, narrator)
        with state.exclusive(cluster.layout.lock):
            up.bring_up(cluster.layout, shape=shape, images=images or {}, narrator=cluster.narrator)
        return cluster

    @property
    def kubeconfig(self) -> Path:
        """The administrator's access."""
        return self.layout.kubeconfig

    def stop(self) -> list[ProcessId]:
        """Stop all that was started for this folder, pods included; return the processes that SIGTERM did not end."""
        with state.exclusive(self.layout.lock):
            return up.clear_away(self.layout)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Return what kubectl prints.

        Raises:
            CommandFailed: it failed; the message has what it wrote to standard error.
        """
        return self._run([find_kubectl(), "--kubeconfig", self.kubeconfig, *arguments], stdin)

    def helm(self, *arguments: str, stdin: str | None = None) -> str:
        """Return what Helm prints; it is built first if need be."""
        helm = build.ensure_built(self.narrator, build.HELM_BINARY)[build.HELM_BINARY]
        return self._run([helm, "--kubeconfig", self.kubeconfig, *arguments], stdin)

    def status(self) -> ClusterStatus:
        """Return what the cluster looks like now."""
        record = self.record()
        with up.connection(self.layout, record) as api:
            return read_status(self.layout, record, components(up.blueprint(self.layout, record)).values(), api)

    def set_images(self, images: Mapping[str, ImageCommand]) -> None:
        """Replace the images that come on top of fish-tts' own; nodes see it at once."""
        up.write_images(self.layout, images)

    def kill(self, component: str) -> None:
        """End a component like a crash would, with SIGKILL, and wait until it is gone."""
        process = self._process(component)
        processes.kill(process, signal.SIGKILL)
        processes.wait_gone([process], timeout_s=5.0)

    def revive(self, *names: str) -> None:
        """Start components again that have died."""
        with state.exclusive(self.layout.lock):
            up.revive(self.layout, self.record(), names)

    def faults(self) -> dict[str, NodeFaults]:
        """Return what goes wrong on purpose, by node."""
        return {node: read_faults(self.layout.node_dir(node)) for node in self.record().shape.node_names}

    def set_faults(self, faults: Mapping[str, NodeFaults]) -> None:
        """Put exactly these faults on the nodes named; the others keep theirs."""
        known = self.record().shape.node_names
        for node, wanted in faults.items():
            if node not in known:
                raise UnknownName(f"no node is called {node!r}; there are {', '.join(known)}")
            write_faults(self.layout.node_dir(node), wanted)

    def kill_pods(self, pattern: str) -> list[str]:
        """End the processes of pods with SIGKILL, as a crash would; return the pods, as NAMESPACE/NAME.

        Raises:
            UnknownName: nothing runs in any pod that fits the pattern.
        """
        nodes = self.record().shape.node_names
        running = [pod for node in nodes for pod in pod_processes(self.layout.node_dir(node))]
        fitting = [pod for pod in running if pod.matches(pattern)]
        if not fitting:
            names = ", ".join(pod.pod for pod in running) or "none"
            raise UnknownName(f"no running pod fits {pattern!r} (NAMESPACE/NAME, * and ? allowed); running: {names}")
        for group in (group for pod in fitting for group in pod.groups):
            with suppress(ProcessLookupError):  # it ended in between
                os.killpg(group, signal.SIGKILL)
        return [pod.pod for pod in fitting]

    def record(self) -> ClusterRecord:
        """Return what is known of the running cluster.

        Raises:
            NotRunning: none runs, or not as a whole since its start was stopped half-way.
        """
        match up.look_at(self.layout):
            case Running(record=record) | Wounded(record=record):
                return record
            case Stale(reason=reason):
                raise NotRunning(
                    f"the cluster in {self.layout.root} does not run ({reason}): start it with `fish-local up`"
                )
            case Absent():
                raise NotRunning(f"no cluster runs in {self.layout.root}: start one with `fish-local up`")

    def _process(self, component: str) -> ProcessId:
        record = self.record()
        if component not in record.processes:
            known = ", ".join(record.processes)
            raise UnknownName(f"no component is called {component!r}; there are {known}")
        return record.processes[component]

    def _run(self, command: list[str | Path], stdin: str | None) -> str:
        environment = os.environ | {"KUBECONFIG": str(self.kubeconfig)}
        answer = subprocess.run(
            [str(part) for part in command],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            timeout=_COMMAND_TIMEOUT_S,
        )
        if answer.returncode:
            shown = " ".join([Path(command[0]).name, *map(str, command[3:])])
            raise CommandFailed(f"`{shown}` ended with {answer.returncode}: {answer.stderr.strip()}")
        return answer.stdout
