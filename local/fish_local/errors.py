"""What can go wrong with a local cluster. Every message says what was found and what to do about it."""

# ruff: noqa: N818 - the name is the sentence


class LocalError(Exception):
    """A local cluster cannot do what was asked; the command line prints the message and exits 1."""


class ToolMissing(LocalError):
    """A program that the cluster is built or driven with is not there and cannot be installed."""


class BuildFailed(LocalError):
    """The Go sources of the cluster did not compile."""


class CheckFailed(LocalError):
    """The Go sources are not as they should be."""


class PortTaken(LocalError):
    """A port that cannot be chosen freely is in use by somebody else."""


class StateBusy(LocalError):
    """Another command works in the same state folder."""


class NotRunning(LocalError):
    """There is no running cluster in the state folder."""


class DifferentCluster(LocalError):
    """A cluster of another shape runs in the state folder."""


class StartFailed(LocalError):
    """A part of the cluster ended or did not become ready in time."""


class CommandFailed(LocalError):
    """kubectl, helm or a call to the API server failed."""


class UnknownName(LocalError):
    """No component, node, pod or fault has this name."""


class BadTable(LocalError):
    """A table of images has the wrong form."""


class BadRecord(LocalError):
    """The file that says what runs cannot be read as such."""
