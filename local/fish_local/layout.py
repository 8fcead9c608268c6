"""Where everything of one cluster lies in its state folder. Names only: nothing here reads or writes."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The files of one cluster. `root` is absolute, so that processes with other working folders agree on it."""

    root: Path

    def __post_init__(self) -> None:
        if not self.root.is_absolute():
            raise ValueError(f"the state folder must be an absolute path, got {self.root}")

    @property
    def state(self) -> Path:
        """What runs, by process id; written by `up`, removed by `down`."""
        return self.root / "cluster.json"

    @property
    def lock(self) -> Path:
        """Held by the command that changes the cluster."""
        return self.root / "lock"

    @property
    def kubeconfig(self) -> Path:
        """For people: the administrator's access."""
        return self.root / "kubeconfig"

    @property
    def images(self) -> Path:
        """Which local command stands for which image; the nodes read it again whenever it changes."""
        return self.root / "images.yaml"

    @property
    def pki(self) -> Path:
        """Keys and certificates, made anew for each cluster."""
        return self.root / "pki"

    @property
    def access(self) -> Path:
        """Tokens, and a kubeconfig for each part of the control plane and each node."""
        return self.root / "access"

    @property
    def tokens(self) -> Path:
        """The API server's static tokens."""
        return self.access / "tokens.csv"

    @property
    def scheduler_config(self) -> Path:
        """How the scheduler scores nodes."""
        return self.root / "scheduler.yaml"

    @property
    def etcd_data(self) -> Path:
        """The cluster's database."""
        return self.root / "etcd"

    @property
    def nodes(self) -> Path:
        """What the nodes remember."""
        return self.root / "nodes"

    @property
    def logs(self) -> Path:
        """What the components print."""
        return self.root / "logs"

    def component_kubeconfig(self, component: str) -> Path:
        """A component's own access."""
        return self.access / f"{component}.kubeconfig"

    def node_dir(self, node: str) -> Path:
        """What a node remembers: pods, logs, GPU holders, faults."""
        return self.nodes / node

    def log(self, component: str) -> Path:
        """What a component prints."""
        return self.logs / f"{component}.log"
