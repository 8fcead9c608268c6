"""The way to the API server: KUBECONFIG, else the pod's own ServiceAccount, else ~/.kube/config."""

import os
from typing import Final

import kopf

from fish_operator.errors import CredentialsError

REREAD_AFTER_S: Final = 60.0
"""Tokens are exchanged before they expire; nobody says when."""


def connection(settings: kopf.OperatorSettings) -> kopf.ConnectionInfo:
    """Return address and credentials as they are now; raise `CredentialsError` if there are none."""
    try:
        if not os.environ.get("KUBECONFIG"):
            in_cluster = kopf.login_with_service_account(settings=settings)
            if in_cluster is not None:
                return in_cluster
        from_file = kopf.login_with_kubeconfig(settings=settings)
    except (OSError, KeyError, kopf.LoginError) as error:
        raise CredentialsError(f"cannot read the kubeconfig {os.environ.get('KUBECONFIG')!r}: {error!r}") from error
    if from_file is None or not from_file.server:
        raise CredentialsError("no way to an API server: set KUBECONFIG, or run in a pod with a ServiceAccount")
    return from_file
