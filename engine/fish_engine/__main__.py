"""`python -m fish_engine`: the engine's commands."""

from pathlib import Path
from typing import Annotated

import typer

from fish_contracts.exit_codes import ExitCode

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def engine() -> None:
    """Text in, speech out."""


@app.command()
def verify(
    folder: Annotated[Path, typer.Argument(help="Weights in the published format, with their golden.safetensors.")],
    device: Annotated[str, typer.Option(help="cpu, or a CUDA device.")] = "cpu",
) -> None:
    """Check the engine against golden vectors; exit 1 and name the tensor, step and element that differs."""
    # Imported here: torch takes seconds, and `--help` should not.
    from fish_engine.devices import usable_device  # noqa: PLC0415
    from fish_engine.errors import EngineError  # noqa: PLC0415
    from fish_engine.verify import verify as comparisons  # noqa: PLC0415

    faults = 0
    try:
        for comparison in comparisons(folder, usable_device(device)):
            bound = f"worst difference {comparison.worst:.2g}, tolerance {comparison.tolerance:.0e}"
            if comparison.fault is None:
                typer.echo(f"  ok   {comparison.name}: {bound}")
            else:
                faults += 1
                typer.echo(f"  FAIL {comparison.name}: {comparison.fault} ({bound})")
    except EngineError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from error
    typer.echo(f"{folder}: {'everything matches' if not faults else f'{faults} tensors differ'}")
    raise typer.Exit(1 if faults else 0)


@app.command()
def serve(
    *,
    checkpoint: Annotated[Path | None, typer.Option(help="Folder with config.json, weights and tokenizer.")] = None,
    codec: Annotated[Path | None, typer.Option(help="Folder with codec.pth; default: the checkpoint's folder.")] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on; default: 127.0.0.1.")] = None,
    port: Annotated[int | None, typer.Option(help="Port for clients; default: 8080.")] = None,
    metrics_port: Annotated[int | None, typer.Option(help="Port for Prometheus; default: 9090.")] = None,
    max_streams: Annotated[int | None, typer.Option(help="Streams made at the same time; default: 16.")] = None,
    max_queued: Annotated[int | None, typer.Option(help="Streams that may wait for a place; default: 64.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, or a CUDA device; default: cpu.")] = None,
    api_keys_file: Annotated[Path | None, typer.Option(help="Keys that clients must bring, one a line.")] = None,
    voices: Annotated[
        Path | None, typer.Option(help="Folder that keeps voices; default: until the process ends.")
    ] = None,
) -> None:
    """Serve speech over HTTP. Every option, and a few more, can be set as FISH_ENGINE_… in the environment."""
    from pydantic import ValidationError  # noqa: PLC0415

    from fish_engine.server.settings import ServeSettings  # noqa: PLC0415

    given = {
        name: value for name, value in locals().items() if value is not None and name in ServeSettings.model_fields
    }
    try:
        settings = ServeSettings(**given)
    except ValidationError as error:
        for fault in error.errors():
            typer.echo(f"error: {'.'.join(map(str, fault['loc']))}: {fault['msg']}", err=True)
        raise typer.Exit(ExitCode.USAGE) from error
    from fish_engine.server.serve import serve as run  # noqa: PLC0415

    raise typer.Exit(run(settings))


@app.command()
def bench(
    *,
    random_weights: Annotated[bool, typer.Option("--random-weights", help="Measure the true S2 shape.")] = False,
    concurrency: Annotated[str, typer.Option(help="Numbers of streams.")] = "1,16,64",
    device: Annotated[str, typer.Option(help="A CUDA device.")] = "cuda",
    is_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure frames a second, alone and with their sound, through the real loop with sampling on."""
    import json  # noqa: PLC0415

    from fish_engine.bench import Bench, Shape, parsed_concurrency, report  # noqa: PLC0415
    from fish_engine.devices import usable_device  # noqa: PLC0415
    from fish_engine.errors import EngineError  # noqa: PLC0415

    try:
        if not random_weights:
            raise EngineError("bench measures random weights only: add --random-weights")  # noqa: TRY301
        streams = parsed_concurrency(concurrency)
        place = usable_device(device)
        if place.type != "cuda":
            raise EngineError(f"device {device!r}: expected a CUDA device, the true shape needs one")  # noqa: TRY301
    except EngineError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(ExitCode.USAGE) from error
    shape = Shape()
    runs = Bench(shape, concurrency=streams, device=place)
    results = []
    for number in streams:
        results.append(runs.measure(number))
        alone, with_sound = results[-1].frames_per_s.median, results[-1].frames_to_pcm_per_s.median
        typer.echo(f"{number:4d} streams: {alone:8.1f} frames/s, to PCM {with_sound:8.1f} frames/s", err=is_json)
    if is_json:
        typer.echo(json.dumps(report(results, shape, place)))


if __name__ == "__main__":
    app(prog_name="python -m fish_engine")
