"""Who may call the API server: static tokens, and the files that carry them. Pure, except for `fresh_token`."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from fish_local.errors import BadTable
from fish_local.shape import ImageCommand, Shape

CONTEXT: Final = "fish-local"
ADMINISTRATOR: Final = "fish-local-admin"
_ALL_RIGHTS: Final = "system:masters"


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A user of the API server."""

    user: str
    groups: tuple[str, ...]
    token: str


def fresh_token() -> str:
    """Return a token that nobody can guess."""
    return secrets.token_urlsafe(24)


def identities(shape: Shape) -> dict[str, Identity]:
    """Return who calls the API server, by component; the administrator is under `ADMINISTRATOR`."""
    users = {
        ADMINISTRATOR: (ADMINISTRATOR, (_ALL_RIGHTS,)),
        "kube-scheduler": ("system:kube-scheduler", ()),
        # Its controllers act under its own name, so it needs the rights of all of them.
        "kube-controller-manager": ("system:kube-controller-manager", (_ALL_RIGHTS,)),
        # A node of ours watches all ConfigMaps and Secrets, which the rights of a real kubelet do not allow.
        **{name: (f"system:node:{name}", ("system:nodes", _ALL_RIGHTS)) for name in shape.node_names},
    }
    return {name: Identity(user=user, groups=groups, token=fresh_token()) for name, (user, groups) in users.items()}


def token_file(known: Mapping[str, Identity]) -> str:
    """Return the API server's token file: token, user, uid, groups."""
    return "".join(
        f'{identity.token},{identity.user},{identity.user},"{",".join(identity.groups)}"\n'
        for identity in known.values()
    )


def kubeconfig(*, server: str, authority: Path, identity: Identity) -> str:
    """Return a kubeconfig with one context; the authority's certificate is named by path."""
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": CONTEXT,
            "clusters": [
                {"name": CONTEXT, "cluster": {"server": server, "certificate-authority": str(authority)}},
            ],
            "users": [{"name": identity.user, "user": {"token": identity.token}}],
            "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": identity.user}}],
        },
        sort_keys=False,
    )


def scheduler_config(*, kubeconfig: Path) -> str:
    """Return the scheduler's configuration: fill one node's GPUs before the next, so that whole nodes stay free."""
    most_allocated = {
        "type": "MostAllocated",
        "resources": [{"name": "nvidia.com/gpu", "weight": 1}],
    }
    return yaml.safe_dump(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(kubeconfig)},
            "leaderElection": {"leaderElect": False},
            "podMaxBackoffSeconds": 2,  # a pod that waits for a GPU is tried again soon
            "profiles": [
                {
                    "schedulerName": "default-scheduler",
                    "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": most_allocated}}],
                }
            ],
        },
        sort_keys=False,
    )


def image_table(images: Mapping[str, ImageCommand], *, environment: Mapping[str, str]) -> str:
    """Return the nodes' table of images; every command gets `environment` on top of its own."""
    return yaml.safe_dump(
        {
            "images": {
                name: {"command": list(image.command), "env": {**image.environment, **environment}}
                for name, image in images.items()
            }
        },
        sort_keys=False,
    )


def parsed_image_table(text: str) -> dict[str, ImageCommand]:
    """Read a table that `image_table` wrote, or one of the same form by hand.

    Raises:
        BadTable: it has another form; the message says which.
    """
    try:
        table = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BadTable(f"the table of images is not YAML: {error}") from error
    images = table.get("images") if isinstance(table, dict) else None
    if not isinstance(images, dict):
        raise BadTable(f'expected `images: {{"NAME": {{command: [...], env: {{...}}}}}}`, found {text[:60]!r}')
    return {str(name): _parsed_image(str(name), image) for name, image in images.items()}


def _parsed_image(name: str, image: object) -> ImageCommand:
    command = image.get("command") if isinstance(image, dict) else None
    environment = image.get("env") or {} if isinstance(image, dict) else None
    if not isinstance(command, list) or not command or not isinstance(environment, dict):
        raise BadTable(f"image {name}: expected {{command: [PROGRAM, ...], env: {{NAME: VALUE}}}}, got {image!r}")
    return ImageCommand(
        command=tuple(map(str, command)),
        environment={str(key): str(value) for key, value in environment.items()},
    )
