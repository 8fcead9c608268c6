"""What a cluster is to be: how many nodes with how many GPUs, and which local commands stand for images."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from fish_local.network import MAX_NODES

CONTROL_PLANE: Final = ("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Nodes and their GPUs."""

    nodes: int = 2
    gpus_per_node: int = 2

    def __post_init__(self) -> None:
        if not 1 <= self.nodes <= MAX_NODES:
            raise ValueError(f"nodes must be between 1 and {MAX_NODES}, got {self.nodes}")
        if self.gpus_per_node < 0:
            raise ValueError(f"GPUs per node must not be negative, got {self.gpus_per_node}")

    @property
    def node_names(self) -> tuple[str, ...]:
        """The names of the nodes, in order."""
        return tuple(f"node-{index}" for index in range(self.nodes))

    @property
    def component_names(self) -> tuple[str, ...]:
        """Everything that `up` starts, in the order in which it can be started."""
        return (*CONTROL_PLANE, *self.node_names)

    def __str__(self) -> str:
        return f"{self.nodes} x {self.gpus_per_node} GPUs"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageCommand:
    """The local command that stands for an image; a pod's `args` are appended to it."""

    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


def fish_tts_images() -> dict[str, ImageCommand]:
    """Return the chart's three images as this interpreter's modules."""
    one_thread = {"OMP_NUM_THREADS": "1"}  # fake GPUs share few cores; threads of several engines would fight for them
    return {
        "fish-tts/operator": ImageCommand(command=(sys.executable, "-m", "fish_operator")),
        "fish-tts/engine": ImageCommand(command=(sys.executable, "-m", "fish_engine"), environment=one_thread),
        "fish-tts/cleaning": ImageCommand(command=(sys.executable, "-m", "fish_cleaning"), environment=one_thread),
    }
