"""`fish-local faults …`: make things go wrong on purpose, and stop that again."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fish_local.cluster import Cluster
from fish_local.explain import explained
from fish_local.node_files import NodeFaults, SlowExit

app = typer.Typer(no_args_is_help=True, help="Make things go wrong on purpose: kill, hang, go silent.")
console = Console(soft_wrap=True, highlight=False)

StateOption = Annotated[Path, typer.Option("--state", help="Folder of the cluster's files.")]
PodArgument = Annotated[str, typer.Argument(help="NAMESPACE/NAME of pods; * and ? are allowed.")]
DEFAULT_STATE = Path(".state")


@app.command("list")
def show(*, state: StateOption = DEFAULT_STATE) -> None:
    """Show which faults are on."""
    with explained():
        for node, faults in Cluster.in_folder(state).faults().items():
            console.print(f"{node}: {'; '.join(described(faults)) or 'no faults'}", markup=False)


@app.command()
def clear(*, state: StateOption = DEFAULT_STATE) -> None:
    """Switch all faults off."""
    with explained():
        cluster = Cluster.in_folder(state)
        cluster.set_faults(dict.fromkeys(cluster.faults(), NodeFaults()))


@app.command()
def kill(
    name: Annotated[str, typer.Argument(help="A component, such as etcd or node-0, or NAMESPACE/NAME of pods.")],
    *,
    state: StateOption = DEFAULT_STATE,
) -> None:
    """End a component or the processes of pods with SIGKILL; `fish-local up` starts a component again."""
    with explained():
        cluster = Cluster.in_folder(state)
        if "/" in name:
            console.print(f"killed {', '.join(cluster.kill_pods(name))}", markup=False)
        else:
            cluster.kill(name)
            console.print(f"killed {name}", markup=False)


@app.command()
def lost_heartbeat(
    node: Annotated[str, typer.Argument(help="The node that falls silent.")], *, state: StateOption = DEFAULT_STATE
) -> None:
    """Let a node fall silent: it is written off after 20 s, while its pods go on."""
    with explained():
        cluster = Cluster.in_folder(state)
        known = cluster.faults()
        cluster.set_faults({node: replace(known.get(node, NodeFaults()), lost_heartbeat=True)})


@app.command()
def never_start(pods: PodArgument, *, state: StateOption = DEFAULT_STATE) -> None:
    """Take pods, but never start their processes."""
    _add_everywhere(state, NodeFaults(never_start=(pods,)))


@app.command()
def ignore_sigterm(pods: PodArgument, *, state: StateOption = DEFAULT_STATE) -> None:
    """Do not tell pods to stop, so that only SIGKILL at the end of their grace ends them."""
    _add_everywhere(state, NodeFaults(ignore_sigterm=(pods,)))


@app.command()
def slow_exit(
    pods: PodArgument,
    *,
    delay_s: Annotated[float, typer.Option("--delay", min=0.0, help="How late pods are told to stop, in seconds.")],
    state: StateOption = DEFAULT_STATE,
) -> None:
    """Tell pods late to stop."""
    _add_everywhere(state, NodeFaults(slow_exit=(SlowExit(pod=pods, delay_s=delay_s),)))


def described(faults: NodeFaults) -> list[str]:
    """Return one phrase for each fault that is on."""
    return [
        *(["lost heartbeat"] if faults.lost_heartbeat else []),
        *(f"never start {pod}" for pod in faults.never_start),
        *(f"ignore SIGTERM of {pod}" for pod in faults.ignore_sigterm),
        *(f"slow exit of {slow.pod} by {slow.delay_s:g} s" for slow in faults.slow_exit),
    ]


def _add_everywhere(state: Path, more: NodeFaults) -> None:
    """Add faults of pods to all nodes: a pod may come up on any."""
    with explained():
        cluster = Cluster.in_folder(state)
        cluster.set_faults({node: faults.and_also(more) for node, faults in cluster.faults().items()})
