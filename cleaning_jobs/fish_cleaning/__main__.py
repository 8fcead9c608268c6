"""`fish-clean`, also `python -m fish_cleaning`: run, verify, tidy, plan, make-corpus."""

# Told to stop, a worker leaves with the right status from its first moments on; and commands load what they need when they
# run, because a worker is started and stopped all day.
# ruff: noqa: PLC0415

from fish_cleaning.stopping import exit_at_once_when_told

if __name__ == "__main__":
    exit_at_once_when_told()

import contextlib
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from fish_cleaning.errors import CleaningError
from fish_contracts.exit_codes import ExitCode
from fish_contracts.reports import HTTP_PORT, METRICS_PORT

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)

Input = Annotated[str, typer.Option("--input", help="Recordings: a folder, a file:// URI or s3://bucket/prefix.")]
Output = Annotated[
    str, typer.Option("--output", help="Where the shards go: a folder, a file:// URI or s3://bucket/prefix.")
]
RecipeName = Annotated[str, typer.Option("--recipe", help="Name of a shipped recipe, or a YAML file.")]


@app.callback()
def start() -> None:
    """Clean recorded speech."""
    exit_at_once_when_told()


@app.command()
def run(  # noqa: PLR0917 - options, always given by name
    input: Input,  # noqa: A002 - the name of the option
    output: Output,
    recipe: RecipeName = "quick",
    host: Annotated[str | None, typer.Option(envvar="POD_IP", help="Address for status; none served without.")] = None,
    port: Annotated[int, typer.Option(help="Port of /v1/progress.")] = HTTP_PORT,
    metrics_port: Annotated[int, typer.Option(help="Port of /metrics.")] = METRICS_PORT,
    max_speed: Annotated[
        float | None, typer.Option(help="Cap, in seconds of audio a second; overrides the recipe.")
    ] = None,
    lease_ttl: Annotated[
        float, typer.Option(min=0.1, help="Seconds after which a silent worker's unit is taken over.")
    ] = 15.0,
    summary: Annotated[
        Path | None, typer.Option(envvar="TERMINATION_LOG", help="File for one line of JSON at the end.")
    ] = None,
) -> None:
    """Clean recordings until the job is complete. Start it again, or in many places at once: it continues.

    Exits 0 when every unit is committed, 75 when told to stop (finished work is safe), 65 for an input or output that cannot
    be used, 78 for a wrong setting.
    """
    from fish_cleaning.session import RunOptions, run_worker

    options = RunOptions(
        input=input,
        output=output,
        recipe=recipe,
        host=host or None,
        port=port,
        metrics_port=metrics_port,
        max_speed=max_speed,
        lease_ttl_s=lease_ttl,
        summary_path=summary,
    )
    with _errors_explained():
        run_worker(options)


@app.command()
def plan(input: Input, output: Output, recipe: RecipeName = "quick") -> None:  # noqa: A002
    """Write the plan without starting work, and say how big it is."""
    from fish_cleaning.locations import open_source, open_store
    from fish_cleaning.plan import ensure_plan
    from fish_cleaning.recipe import load_recipe

    with _errors_explained():
        made = ensure_plan(open_store(output), open_source(input), load_recipe(recipe))
        print(f"{made.items_total} recordings in {len(made.units)} units, configuration {made.config_hash}")


@app.command()
def verify(
    input: Input,  # noqa: A002
    output: Output,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check that each recording of the input is in the output exactly once, intact, or rejected with a reason."""
    from fish_cleaning.locations import open_source, open_store
    from fish_cleaning.verify import verify as verify_output

    with _errors_explained():
        verdict = verify_output(open_source(input), open_store(output))
    if as_json:
        print(json.dumps(asdict(verdict)))
    else:
        for name, value in asdict(verdict).items():
            print(f"{name:>18}  {value}")
        print("The output is complete and intact." if verdict.is_good else "The output is NOT complete and intact.")
    raise typer.Exit(ExitCode.DONE if verdict.is_good else ExitCode.FAILED)


@app.command()
def tidy(
    output: Output,
    older_than: Annotated[float, typer.Option(min=1.0, help="Hours since it was written.")] = 24.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be deleted.")] = False,
) -> None:
    """Delete what an output does not need any more: shards of beaten workers, journals and leases of published units."""
    from fish_cleaning.locations import open_store
    from fish_cleaning.tidy import tidy as tidy_output

    with _errors_explained():
        tidied = tidy_output(open_store(output), older_than_s=older_than * 3600, is_rehearsal=dry_run)
    print(f"{tidied.blobs} files, {tidied.size_bytes / 1e6:.1f} MB {'would be' if dry_run else 'were'} deleted")


@app.command()
def make_corpus(  # noqa: PLR0917 - options, always given by name
    source: Annotated[str, typer.Option(help="Folder of clean speech at 16 kHz.")],
    out: Annotated[str, typer.Option(help="Folder to write to.")],
    items: Annotated[int, typer.Option(help="How many recordings.")] = 240,
    seed: Annotated[int, typer.Option(min=0, help="The same seed makes the same files.")] = 0,
    min_s: Annotated[float, typer.Option(min=1.0, help="Shortest recording.")] = 3.0,
    max_s: Annotated[float, typer.Option(min=1.0, help="Longest recording.")] = 10.0,
) -> None:
    """Make a corpus with known faults from clean speech, for trying things out."""
    from fish_cleaning.corpus import make_corpus as write_corpus
    from fish_cleaning.locations import folder_of
    from fish_cleaning.source import AudioFolder

    with _errors_explained():
        write_corpus(AudioFolder(folder_of(source)), folder_of(out), items=items, seed=seed, cut_s=(min_s, max_s))


@app.command(hidden=True)
def clean_one() -> None:
    """Clean the one item on stdin in this process, which may die of it."""
    from fish_cleaning.isolation import answer, die_with_parent

    die_with_parent()
    sys.stdout.buffer.write(answer(sys.stdin.buffer.read()))


@contextlib.contextmanager
def _errors_explained() -> Iterator[None]:
    try:
        yield
    except CleaningError as error:
        print(f"fish-clean: {error}", file=sys.stderr)
        raise typer.Exit(error.exit_code) from error


if __name__ == "__main__":
    app()
