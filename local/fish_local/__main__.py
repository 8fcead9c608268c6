"""The command `fish-local`: a one-machine Kubernetes of real parts, without root, containers or a GPU."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from fish_local import build, fault_commands, go_checks
from fish_local.access import parsed_image_table
from fish_local.cluster import Cluster
from fish_local.demo.command import perform
from fish_local.demo.story import Options
from fish_local.explain import explained
from fish_local.progress import narrator
from fish_local.shape import Shape
from fish_local.status import ClusterStatus

app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__)
app.add_typer(fault_commands.app, name="faults")
console = Console()

StateOption = Annotated[Path, typer.Option("--state", help="Folder of the cluster's files, made if need be.")]
DEFAULT_STATE = Path(".state")


@app.command("build")
def build_binaries() -> None:
    """Build the cluster and Helm, if the cache lacks them, and print where they are."""
    with explained(), narrator(console) as tell:
        for binary in build.ensure_built(tell).values():
            tell.say(str(binary))


@app.command("check-go")
def check_go_sources() -> None:
    """Check the cluster's Go sources: format, vet, tests."""
    with explained(), narrator(console) as tell:
        go_checks.check(tell)


@app.command("up")
def bring_up(
    *,
    state: StateOption = DEFAULT_STATE,
    nodes: Annotated[int | None, typer.Option(help="How many nodes; 2 by default.")] = None,
    gpus: Annotated[int | None, typer.Option(help="How many fake GPUs each node has; 2 by default.")] = None,
    images: Annotated[
        Path | None, typer.Option(help="YAML table of more images: {images: {NAME: {command: [...], env: {...}}}}.")
    ] = None,
) -> None:
    """Start a cluster, or mend the one that is there, and say how to use it."""
    with explained(), narrator(console) as tell:
        more = parsed_image_table(images.read_text()) if images else {}
        cluster = Cluster.start(state, shape=_shape(nodes, gpus), images=more, narrator=tell)
        tell.say("to look around:")
        tell.say(f"  export KUBECONFIG={cluster.kubeconfig}")
        tell.say("  kubectl get nodes")


@app.command("down")
def bring_down(*, state: StateOption = DEFAULT_STATE) -> None:
    """Stop what `up` started in this folder, pods included, and nothing else."""
    with explained(), narrator(console) as tell:
        cluster = Cluster.in_folder(state, tell)
        killed = cluster.stop()
        if cluster.layout.logs.is_dir():
            tell.say(f"the cluster in {state.resolve()} is down; its logs stay in {state / 'logs'}")
        else:
            tell.say(f"no cluster was ever started in {state.resolve()}: nothing to stop")
        if killed:
            tell.say(f"SIGTERM was not enough for {len(killed)} of its processes, they were killed")


@app.command("status")
def show_status(
    *,
    state: StateOption = DEFAULT_STATE,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show components, nodes, pods, and who holds which GPU; exit 1 unless every component is ready."""
    with explained():
        status = Cluster.in_folder(state).status()
        if as_json:
            sys.stdout.write(json.dumps(asdict(status), indent=2) + "\n")
        else:
            _print_tables(status)
        if not status.is_ready:
            raise typer.Exit(1)


@app.command("demo")
def play_demo(
    *,
    state: StateOption = DEFAULT_STATE,
    output: Annotated[Path, typer.Option(help="Folder for the report, the sound and the cleaned corpus.")] = Path(
        "demo"
    ),
    items: Annotated[int, typer.Option(min=10, help="How many recordings the cleaning job gets.")] = 240,
) -> None:
    """Play a traffic wave that takes GPUs from a cleaning job and gives them back; exit 1 if a promise was broken."""
    with explained():
        if not perform(Options(state=state, output=output, items=items), console):
            raise typer.Exit(1)


def _shape(nodes: int | None, gpus: int | None) -> Shape | None:
    if nodes is None and gpus is None:
        return None
    usual = Shape()
    return Shape(
        nodes=usual.nodes if nodes is None else nodes, gpus_per_node=usual.gpus_per_node if gpus is None else gpus
    )


def _print_tables(status: ClusterStatus) -> None:
    for title, rows in (
        ("components", status.components),
        ("nodes", status.nodes),
        ("pods", status.pods),
        ("GPUs", status.gpus),
    ):
        if not rows:
            continue
        records = [asdict(row) for row in rows]
        table = Table(title=title, title_justify="left")
        for column in records[0]:
            table.add_column(column.removeprefix("is_").replace("_", " "))
        for record in records:
            table.add_row(*(_shown(value) for value in record.values()))
        console.print(table)


def _shown(value: object) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case tuple():
            return ", ".join(map(str, value))
        case _:
            return str(value)


if __name__ == "__main__":
    app(prog_name="fish-local")
