from pathlib import Path

import pytest

from fish_local.components import Blueprint, Component, components
from fish_local.layout import Layout
from fish_local.network import Network, choose_network
from fish_local.shape import Shape


@pytest.fixture
def network() -> Network:
    return choose_network([], seed="test")


@pytest.fixture
def made(network: Network) -> dict[str, Component]:
    layout = Layout(root=Path("/state"))
    return components(
        Blueprint(
            shape=Shape(nodes=2, gpus_per_node=3), network=network, layout=layout, binary=Path("/bin/fish-cluster")
        )
    )


def test_all_parts_of_a_shape_are_made_in_the_order_of_starting(made: dict[str, Component]) -> None:
    assert tuple(made) == Shape().component_names


def test_one_binary_is_every_part(made: dict[str, Component]) -> None:
    assert {component.argv[:2] for component in made.values()} == {
        ("/bin/fish-cluster", program)
        for program in ("etcd", "kube-apiserver", "kube-scheduler", "kube-controller-manager", "node")
    }


def test_the_api_server_checks_rights(made: dict[str, Component]) -> None:
    assert "--authorization-mode=RBAC" in made["kube-apiserver"].argv


def test_the_controllers_that_refuse_loopback_addresses_are_off(made: dict[str, Component]) -> None:
    (flag,) = [flag for flag in made["kube-controller-manager"].argv if flag.startswith("--controllers=")]
    assert {"-endpoints-controller", "-endpointslice-controller"} < set(flag.removeprefix("--controllers=").split(","))


def test_each_node_has_its_gpus_and_addresses(made: dict[str, Component], network: Network) -> None:
    assert "--gpus=3" in made["node-1"].argv
    assert f"--pod-cidr={network.pod_cidr(1)}" in made["node-1"].argv
    assert f"--listen={network.node_host(1)}:10250" in made["node-1"].argv


def test_nothing_listens_outside_the_clusters_block(made: dict[str, Component], network: Network) -> None:
    flags = [flag for component in made.values() for flag in component.argv if "listen" in flag or "bind-" in flag]
    assert flags
    assert all(f"127.{network.block}.0." in flag for flag in flags)


def test_a_relative_state_folder_is_refused() -> None:
    with pytest.raises(ValueError, match="must be an absolute path, got here"):
        Layout(root=Path("here"))
