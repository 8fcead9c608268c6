import csv
import io
from pathlib import Path

import pytest
import yaml

from fish_local import access
from fish_local.access import ADMINISTRATOR, image_table, parsed_image_table
from fish_local.errors import BadTable
from fish_local.shape import ImageCommand, Shape

ENGINE = ImageCommand(command=("python", "-m", "fish_engine"), environment={"OMP_NUM_THREADS": "1"})


def test_every_node_and_component_has_a_token_of_its_own() -> None:
    known = access.identities(Shape(nodes=3))
    assert {"node-0", "node-1", "node-2", "kube-scheduler", ADMINISTRATOR} <= set(known)
    assert len({identity.token for identity in known.values()}) == len(known)


def test_the_scheduler_has_only_its_own_rights() -> None:
    assert access.identities(Shape())["kube-scheduler"].groups == ()


def test_the_token_file_has_the_columns_that_the_api_server_reads() -> None:
    known = access.identities(Shape(nodes=1))
    rows = {row[1]: row for row in csv.reader(io.StringIO(access.token_file(known)))}
    assert rows["system:node:node-0"] == [
        known["node-0"].token,
        "system:node:node-0",
        "system:node:node-0",
        "system:nodes,system:masters",
    ]


def test_a_kubeconfig_leads_to_the_server_as_the_user() -> None:
    identity = access.identities(Shape())[ADMINISTRATOR]
    config = yaml.safe_load(access.kubeconfig(server="https://s:1", authority=Path("/ca.crt"), identity=identity))
    assert config["current-context"] == "fish-local"
    assert config["clusters"][0]["cluster"] == {"server": "https://s:1", "certificate-authority": "/ca.crt"}
    assert config["users"][0]["user"] == {"token": identity.token}


def test_the_scheduler_fills_one_nodes_gpus_before_the_next() -> None:
    config = yaml.safe_load(access.scheduler_config(kubeconfig=Path("/k")))
    (plugin,) = config["profiles"][0]["pluginConfig"]
    assert plugin["args"]["scoringStrategy"] == {
        "type": "MostAllocated",
        "resources": [{"name": "nvidia.com/gpu", "weight": 1}],
    }


def test_a_table_of_images_reads_back_with_the_common_environment_added() -> None:
    table = image_table({"fish-tts/engine": ENGINE}, environment={"MARK": "here"})
    (image,) = parsed_image_table(table).values()
    assert image.command == ENGINE.command
    assert image.environment == {"OMP_NUM_THREADS": "1", "MARK": "here"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected `images"),
        ("images: [a", "not YAML: .*line 1"),
        ("images: [a]", "expected `images"),
        ("images: {a: {}}", "image a: expected"),
        ("images: {a: {command: python}}", "image a: expected"),
        ("images: {a: {command: []}}", "image a: expected"),
        ("images: {a: {command: [x], env: [y]}}", "image a: expected"),
    ],
)
def test_a_table_of_another_form_is_refused_with_the_form_wanted(text: str, said: str) -> None:
    with pytest.raises(BadTable, match=f"(?s){said}"):
        parsed_image_table(text)
