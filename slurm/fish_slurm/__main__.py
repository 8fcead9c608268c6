"""`fish-slurm`, also `python -m fish_slurm`: submit, fill, check, trial."""

import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from prometheus_client import CollectorRegistry, start_http_server

from fish_contracts.exit_codes import ExitCode
from fish_contracts.priority import WorkClass
from fish_contracts.reports import METRICS_PORT
from fish_slurm.audit import Finding, audit, audit_plugins, parse_config, parse_partitions, parse_qos
from fish_slurm.backlog import read_backlog
from fish_slurm.batch_file import WorkerJob, batch_file
from fish_slurm.command_line import CommandLine, run_command
from fish_slurm.decide import Limits
from fish_slurm.errors import BadSetting, FishSlurmError
from fish_slurm.filler import Filler, only_filler
from fish_slurm.submit import check_plan, submit_workers
from fish_slurm.telemetry import Telemetry
from fish_slurm.trial import cluster as trial_cluster

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)

CleanPartition = Annotated[str, typer.Option(help="Partition of cleaning.")]
TrainPartition = Annotated[str, typer.Option(help="Partition of training.")]
ServePartition = Annotated[str, typer.Option(help="Partition of inference.")]
_DEFAULT_WORKER = f"{sys.executable} -m fish_cleaning"


@app.command()
def submit(  # noqa: PLR0917 - options, always given by name
    name: Annotated[str, typer.Option(help="Name of the cleaning job; its workers share it.")],
    input: Annotated[str, typer.Option("--input", help="Folder of recordings.")],  # noqa: A002 - the name of the option
    output: Annotated[str, typer.Option("--output", help="Folder for the shards.")],
    recipe: Annotated[str, typer.Option("--recipe", help="Name of a shipped recipe, or a YAML file.")],
    run_folder: Annotated[Path, typer.Option(help="Shared folder for logs and summaries.")],
    workers: Annotated[int, typer.Option(min=1, help="How many workers.")] = 1,
    worker: Annotated[str, typer.Option(help="How nodes start a worker.")] = _DEFAULT_WORKER,
    partition: CleanPartition = "clean",
    qos: Annotated[str | None, typer.Option(help="QOS of cleaning, on clusters with slurmdbd.")] = None,
    account: Annotated[str | None, typer.Option(help="Account to charge.")] = None,
    gpus: Annotated[int, typer.Option(help="GPUs of one worker.")] = 1,
    cpus: Annotated[int, typer.Option(help="CPUs of one worker.")] = 2,
    print_only: Annotated[bool, typer.Option("--print", help="Print the batch file and submit nothing.")] = False,
) -> None:
    """Submit workers of a cleaning job; or print the batch file, for a plain sbatch."""
    with _errors_explained():
        job = WorkerJob(
            name=name,
            input=input,
            output=output,
            recipe=recipe,
            run_folder=str(run_folder.absolute()),
            worker=tuple(worker.split()),
            partition=partition,
            qos=qos,
            account=account,
            gpus=gpus,
            cpus=cpus,
        )
        if print_only:
            print(batch_file(job), end="")
            return
        check_plan(job)
        for job_id in submit_workers(CommandLine(partition=partition), job, workers):
            print(job_id)


@app.command()
def fill(  # noqa: PLR0917 - options, always given by name
    backlog: Annotated[Path, typer.Argument(help="YAML file of the cleaning to do.")],
    interval: Annotated[float, typer.Option(min=0.05, help="Seconds between two looks at the cluster.")] = 1.0,
    buffer: Annotated[int, typer.Option(min=0, help="New workers kept waiting, for the moment GPUs come free.")] = 8,
    train_partition: TrainPartition = "train",
    serve_partition: ServePartition = "serve",
    metrics_host: Annotated[str, typer.Option(help="Address of the metrics; Prometheus must reach it.")] = "127.0.0.1",
    metrics_port: Annotated[int, typer.Option(help="Port of the metrics; 0 for none.")] = METRICS_PORT,
) -> None:
    """Keep GPUs cleaning while nothing more important needs them. Runs until SIGTERM; its jobs go on without it."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with _errors_explained():
        todo = read_backlog(backlog)
        limits = Limits(
            pending_buffer=buffer,
            partition_classes={
                todo.partition: WorkClass.CLEANING,
                train_partition: WorkClass.TRAINING,
                serve_partition: WorkClass.INFERENCE,
            },
        )
        registry = CollectorRegistry()
        telemetry = Telemetry(registry, limits)
        if metrics_port:
            _serve(registry, metrics_host, metrics_port)
        with only_filler(todo.run_folder) as lock:
            backend = CommandLine(partition=todo.partition, inherit=(lock,))
            Filler(backend=backend, backlog=todo, limits=limits, telemetry=telemetry).run(stop, interval_s=interval)


@app.command()
def check(
    clean_partition: CleanPartition = "clean",
    train_partition: TrainPartition = "train",
    serve_partition: ServePartition = "serve",
) -> None:
    """Compare the running cluster with the rule and the recommended settings. Ends with 1 if anything deviates."""
    with _errors_explained():
        config = parse_config(run_command(["scontrol", "show", "config"]))
        partitions = parse_partitions(run_command(["scontrol", "--oneliner", "show", "partition"]))
        columns = "format=name,preempt,preemptmode,gracetime"
        has_qos = config.get("PreemptType") == "preempt/qos"
        qos = parse_qos(run_command(["sacctmgr", "--parsable2", "show", "qos", columns])) if has_qos else {}
        names = {
            WorkClass.CLEANING: clean_partition,
            WorkClass.TRAINING: train_partition,
            WorkClass.INFERENCE: serve_partition,
        }
        findings = audit(config=config, partitions=partitions, qos=qos, names=names)
        findings += audit_plugins(_text_of(config.get("PlugStackConfig", "")))
    for finding in findings:
        print(_in_words(finding))
    print(f"{len(findings)} deviations" if findings else "The cluster keeps the rule, with the recommended settings.")
    raise typer.Exit(ExitCode.FAILED if findings else ExitCode.DONE)


@app.command()
def trial(
    nodes: Annotated[int, typer.Option(min=1, help="Virtual nodes.")] = 2,
    gpus: Annotated[int, typer.Option(min=1, help="Fake GPUs of a node.")] = 4,
) -> None:
    """Run a whole Slurm on this host, with fake GPUs, until Ctrl-C. Needs root and the distribution's packages."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with _errors_explained(), tempfile.TemporaryDirectory(prefix="fish-slurm-") as root:
        plan = trial_cluster.plan_here(Path(root), nodes=nodes, gpus_per_node=gpus)
        with trial_cluster.running(plan):
            print(f"export SLURM_CONF={plan.etc}/slurm.conf", flush=True)
            stop.wait()


def _serve(registry: CollectorRegistry, host: str, port: int) -> None:
    try:
        start_http_server(port, addr=host, registry=registry)
    except OSError as error:
        raise BadSetting(
            f"metrics on {host}:{port}: {error.strerror}; give another --metrics-port, or 0 for none"
        ) from error


def _text_of(path: str) -> str:
    """Return a file's text; nothing where there is none, or where only administrators may read it."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _in_words(finding: Finding) -> str:
    return f"{finding.where}: {finding.found}\n  wanted: {finding.wanted}\n  {finding.weight}: {finding.cost}\n"


@contextmanager
def _errors_explained() -> Iterator[None]:
    try:
        yield
    except FishSlurmError as error:
        print(f"fish-slurm: {error}", file=sys.stderr)
        raise typer.Exit(error.exit_code) from error


if __name__ == "__main__":
    app()
