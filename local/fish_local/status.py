"""What a cluster looks like now: components, nodes, pods, and who holds which GPU."""

from collections.abc import Iterable
from dataclasses import dataclass

from fish_local import processes
from fish_local.api import ApiServer, NodeView, PodView
from fish_local.components import Component
from fish_local.launch import is_ready
from fish_local.layout import Layout
from fish_local.node_files import GpuView, gpu_holders
from fish_local.state import ClusterRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentView:
    """A process of the cluster."""

    name: str
    pid: int | None
    is_alive: bool
    is_ready: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStatus:
    """Everything that `fish-local status` shows. Without an API server there are no nodes and pods to tell of."""

    components: tuple[ComponentView, ...]
    nodes: tuple[NodeView, ...] = ()
    pods: tuple[PodView, ...] = ()
    gpus: tuple[GpuView, ...] = ()

    @property
    def is_ready(self) -> bool:
        """Whether every component does its work."""
        return all(component.is_ready for component in self.components)


def read_status(
    layout: Layout, record: ClusterRecord, components: Iterable[Component], api: ApiServer
) -> ClusterStatus:
    """Ask the processes, the API server and the nodes."""
    views = tuple(_component_view(component, record, api) for component in components)
    gpus = tuple(gpu for node in record.shape.node_names for gpu in gpu_holders(layout.node_dir(node)))
    if not any(view.is_ready for view in views if view.name == "kube-apiserver"):
        return ClusterStatus(components=views, gpus=gpus)
    return ClusterStatus(components=views, nodes=tuple(api.nodes()), pods=tuple(api.pods()), gpus=gpus)


def _component_view(component: Component, record: ClusterRecord, api: ApiServer) -> ComponentView:
    process = record.processes.get(component.name)
    is_alive = process is not None and processes.is_alive(process)
    return ComponentView(
        name=component.name,
        pid=process.pid if process else None,
        is_alive=is_alive,
        is_ready=is_alive and is_ready(component, api),
    )
