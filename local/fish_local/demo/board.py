"""The live picture: GPUs by state, streams, queue, progress and the last decisions, as a table or as plain lines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

# The order in which people read them, and the colours that the dashboards use too.
STATE_STYLES: Mapping[str, str] = {
    "serving": "green",
    "loading": "yellow",
    "draining": "cyan",
    "fill": "blue",
    "checkpointing": "magenta",
    "free": "dim",
    "unhealthy": "red",
    "other": "white",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that the picture shows at one moment."""

    elapsed_s: float = 0
    phase: str = "starting"
    listeners: int = 0
    gpus: Mapping[str, int] = field(default_factory=dict)
    streams: int = 0
    queued: int = 0
    engines_ready: int = 0
    engines_wanted: int = 0
    evictions: int = 0
    streams_finished: int = 0
    streams_cut: int = 0
    cleaned_percent: float = 0
    decisions: Sequence[str] = ()


def gpu_bar(gpus: Mapping[str, int]) -> Text:
    """Draw one block a GPU in the colour of its state."""
    bar = Text()
    for state, style in STATE_STYLES.items():
        bar.append("█ " * gpus.get(state, 0), style=style)
    return bar


def gpu_words(gpus: Mapping[str, int]) -> str:
    """Say the same in words."""
    return ", ".join(f"{gpus[state]} {state}" for state in STATE_STYLES if gpus.get(state)) or "none seen yet"


def as_line(shot: Snapshot) -> str:
    """Return the snapshot as one line, for logs and pipes."""
    return (
        f"{shot.elapsed_s:5.0f} s  {shot.phase:<12} {shot.listeners:2d} listeners  "
        f"engines {shot.engines_ready}/{shot.engines_wanted}  streams {shot.streams:2d} + {shot.queued:2d} queued  "
        f"GPUs: {gpu_words(shot.gpus):<34}  evictions {shot.evictions}  cleaned {shot.cleaned_percent:3.0f} %"
    )


def as_table(shot: Snapshot) -> RenderableType:
    """Return the snapshot as a table with the last decisions under it."""
    table = Table(title="fish-tts: speech before cleaning", expand=False)
    for column in ("time", "phase", "listeners", "engines", "streams", "queued", "GPUs", "evictions", "cleaned"):
        table.add_column(column, justify="left" if column in {"phase", "GPUs"} else "right", no_wrap=True)
    table.add_row(
        f"{shot.elapsed_s:.0f} s",
        shot.phase,
        str(shot.listeners),
        f"{shot.engines_ready} of {shot.engines_wanted}",
        str(shot.streams),
        str(shot.queued),
        gpu_bar(shot.gpus),
        str(shot.evictions),
        f"{shot.cleaned_percent:.0f} %",
    )
    legend = Text("  ").join(Text(f"█ {state}", style=style) for state, style in STATE_STYLES.items())
    decisions = [Text(f"• {decision}") for decision in shot.decisions]
    heard = Text(f"{shot.streams_finished} streams heard to the end, {shot.streams_cut} cut")
    return Group(table, legend, heard, *decisions)
