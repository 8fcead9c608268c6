"""`fish-local demo`: the demo on a terminal or in a log."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.live import Live

from fish_local.demo.board import Snapshot, as_line, as_table
from fish_local.demo.report import RECLAIM_BAR_S, Report, broken_promises, is_slow, percentile
from fish_local.demo.story import Options, tell
from fish_local.progress import LineNarrator

LINE_EVERY_S = 5.0


def perform(options: Options, console: Console) -> bool:
    """Run the demo and print its summary; return whether every promise was kept."""
    started_s = time.monotonic()
    with _board(console) as show:
        report = tell(options, LineNarrator(console), show)
    broken = broken_promises(report)
    for line in summary(report, options, time.monotonic() - started_s):
        console.print(line, highlight=False, soft_wrap=True)
    for sentence in broken:
        console.print(f"NOT AS PROMISED: {sentence}", style="red", highlight=False, soft_wrap=True)
    return not broken


@contextmanager
def _board(console: Console) -> Iterator[Callable[[Snapshot], None]]:
    """Draw snapshots: a table that renews itself on a terminal, elsewhere a line now and then and at each new phase."""
    if console.is_terminal:
        with Live(console=console, refresh_per_second=4) as live:
            yield lambda shot: live.update(as_table(shot))
        return
    last = Snapshot(elapsed_s=-LINE_EVERY_S)

    def show(shot: Snapshot) -> None:
        nonlocal last
        if shot.elapsed_s - last.elapsed_s >= LINE_EVERY_S or shot.phase != last.phase:
            last = shot
            console.print(as_line(shot), highlight=False, soft_wrap=True)

    yield show


def summary(report: Report, options: Options, took_s: float) -> Iterator[str]:
    """Yield the lines that people read at the end."""
    yield ""
    yield f"[bold]Done in {took_s:.0f} s.[/bold]  What happened:"
    yield f"  traffic    {report.streams_total} streams, {report.streams_cut} cut; first audio p50 {report.first_audio_s['p50']:.2f} s"
    yield (
        f"  scaling    {report.scale_ups} up, {report.scale_downs} down; "
        f"{report.evictions} cleaning workers evicted for {report.reclaims} engines"
    )
    yield (
        f"  reclaim    p50 {percentile(report.reclaim_s, 50):.1f} s, p95 {percentile(report.reclaim_s, 95):.1f} s "
        "from load seen to engine ready"
        + (f" (SLOW: {RECLAIM_BAR_S:.0f} s is meant; is the machine busy otherwise?):" if is_slow(report) else ":")
    )
    stages = ", ".join(f"{stage} {percentile(times, 50):.1f}" for stage, times in report.reclaim_stage_s.items())
    yield f"             {stages} s at the median"
    yield (
        f"  cleaning   {report.items_committed} kept + {report.items_rejected} rejected of {report.items_expected} items, "
        f"{report.items_lost} lost, {report.items_doubled} doubled, {report.work_redone_ratio:.1%} redone"
    )
    yield f"  GPU time   {report.gpu_seconds_used:.0%} of it served or cleaned"
    yield f"Written to {options.output}/: report.json, gpus.svg (a picture of the run), cleaned/ (shards), and"
    yield "speech.wav, which is noise: the demo speaks with random weights in the published format until a trained voice ships."
    yield "The cluster is still up. Look around:"
    yield f"  export KUBECONFIG={options.state.resolve() / 'kubeconfig'} PATH={Path(sys.executable).parent}:$PATH"
    yield "  kubectl get tts,clean     kubectl get pods -L fish-tts.io/class     fish-local status"
    yield "Stop it with: make down"
