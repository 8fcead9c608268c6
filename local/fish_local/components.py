"""The command line of each part of a cluster. Pure: the flags are the design, and this is the one place that has them."""

from dataclasses import dataclass
from pathlib import Path

from fish_local.layout import Layout
from fish_local.network import Network
from fish_local.pki import Pki
from fish_local.shape import Shape

SERVICE_CIDR = "10.96.0.0/16"
NODE_GRACE_S = 20
"""How long a node may stay silent before its pods are written off; Kubernetes' default is 50 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthUrl:
    """Ready when a GET of this URL gives 200."""

    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeObject:
    """Ready when the Node object says so and somebody listens: for a while the object also says so of a dead node."""

    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A process of the cluster, and how to tell that it is ready."""

    name: str
    argv: tuple[str, ...]
    readiness: HealthUrl | NodeObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Blueprint:
    """All that the command lines depend on."""

    shape: Shape
    network: Network
    layout: Layout
    binary: Path

    @property
    def pki(self) -> Pki:
        """The certificates of this cluster."""
        return Pki(folder=self.layout.pki)


def components(blueprint: Blueprint) -> dict[str, Component]:
    """Return every component by name, in the order in which they can be started."""
    control_plane = (_etcd, _api_server, _scheduler, _controller_manager)
    made = [make(blueprint) for make in control_plane]
    made += [_node(blueprint, index, name) for index, name in enumerate(blueprint.shape.node_names)]
    return {component.name: component for component in made}


def _component(
    blueprint: Blueprint, name: str, flags: dict[str, object], readiness: HealthUrl | NodeObject
) -> Component:
    program = "node" if isinstance(readiness, NodeObject) else name
    arguments = (f"--{flag}={value}" for flag, value in flags.items())
    return Component(name=name, argv=(str(blueprint.binary), program, *arguments), readiness=readiness)


def _etcd(blueprint: Blueprint) -> Component:
    network, pki = blueprint.network, blueprint.pki
    client = f"https://{network.host}:{network.ports['etcd']}"
    peer = f"http://{network.host}:{network.ports['etcd-peer']}"
    metrics = f"http://{network.host}:{network.ports['etcd-metrics']}"
    flags: dict[str, object] = {
        "name": "etcd",
        "data-dir": blueprint.layout.etcd_data,
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"etcd={peer}",
        "listen-metrics-urls": metrics,
        "cert-file": pki.server,
        "key-file": pki.server_key,
        "client-cert-auth": "true",  # other users of the machine can reach the port
        "trusted-ca-file": pki.authority,
        # The cluster is thrown away after a crash of the machine, so it need not survive one; disks of laptops are slow.
        "unsafe-no-fsync": "true",
        "log-level": "warn",
    }
    return _component(blueprint, "etcd", flags, HealthUrl(url=f"{metrics}/readyz"))


def _api_server(blueprint: Blueprint) -> Component:
    network, pki, layout = blueprint.network, blueprint.pki, blueprint.layout
    flags: dict[str, object] = {
        "etcd-servers": f"https://{network.host}:{network.ports['etcd']}",
        "etcd-cafile": pki.authority,
        "etcd-certfile": pki.client,
        "etcd-keyfile": pki.client_key,
        **_serving(blueprint, "kube-apiserver"),
        "advertise-address": network.host,
        "endpoint-reconciler-type": "none",  # an EndpointSlice may not hold loopback addresses
        "service-cluster-ip-range": SERVICE_CIDR,
        "client-ca-file": pki.authority,
        "token-auth-file": layout.tokens,
        "authorization-mode": "RBAC",
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": pki.token_key,
        "service-account-signing-key-file": pki.token_key,
        "kubelet-certificate-authority": pki.authority,
        "kubelet-client-certificate": pki.client,
        "kubelet-client-key": pki.client_key,
        "kubelet-preferred-address-types": "InternalIP",
        "profiling": "false",
    }
    return _component(blueprint, "kube-apiserver", flags, HealthUrl(url=f"{network.api_server}/readyz"))


def _scheduler(blueprint: Blueprint) -> Component:
    flags = {
        "config": blueprint.layout.scheduler_config,
        "authentication-skip-lookup": "true",
        **_serving(blueprint, "kube-scheduler"),
    }
    return _component(blueprint, "kube-scheduler", flags, _health(blueprint, "kube-scheduler", "readyz"))


def _controller_manager(blueprint: Blueprint) -> Component:
    name = "kube-controller-manager"
    pki = blueprint.pki
    flags: dict[str, object] = {
        "kubeconfig": blueprint.layout.component_kubeconfig(name),
        "authentication-skip-lookup": "true",
        **_serving(blueprint, name),
        "leader-elect": "false",
        # Endpoint slices refuse loopback addresses: whoever routes watches the pods.
        "controllers": "*,-endpoints-controller,-endpointslice-controller,-endpointslice-mirroring-controller",
        "flex-volume-plugin-dir": blueprint.layout.root / "volume-plugins",  # else it makes one under /usr
        "node-monitor-period": "2s",
        "node-monitor-grace-period": f"{NODE_GRACE_S}s",
        "service-account-private-key-file": pki.token_key,
        "root-ca-file": pki.authority,
        "profiling": "false",
    }
    return _component(blueprint, name, flags, _health(blueprint, name, "healthz"))


def _node(blueprint: Blueprint, index: int, name: str) -> Component:
    layout, network, pki = blueprint.layout, blueprint.network, blueprint.pki
    host, port = network.node_host(index), network.ports["kubelet"]
    flags: dict[str, object] = {
        "name": name,
        "kubeconfig": layout.component_kubeconfig(name),
        "gpus": blueprint.shape.gpus_per_node,
        "images": layout.images,
        "pod-cidr": network.pod_cidr(index),
        "state-dir": layout.node_dir(name),
        "listen": f"{host}:{port}",
        "cert": pki.server,
        "key": pki.server_key,
        "client-ca": pki.authority,
    }
    return _component(blueprint, name, flags, NodeObject(host=host, port=port))


def _serving(blueprint: Blueprint, name: str) -> dict[str, object]:
    network, pki = blueprint.network, blueprint.pki
    return {
        "bind-address": network.host,
        "secure-port": network.ports[name],
        "tls-cert-file": pki.server,
        "tls-private-key-file": pki.server_key,
    }


def _health(blueprint: Blueprint, name: str, path: str) -> HealthUrl:
    return HealthUrl(url=f"https://{blueprint.network.host}:{blueprint.network.ports[name]}/{path}")
