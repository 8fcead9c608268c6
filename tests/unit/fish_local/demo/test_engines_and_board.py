"""Where streams go, and what people see."""

from rich.console import Console

from fish_contracts.labels import DRAINING, WORK_CLASS
from fish_contracts.priority import WorkClass
from fish_local.demo.board import Snapshot, as_line, as_table
from fish_local.demo.engines import EngineDirectory
from fish_local.demo.kube import Pod


def engine(number: int, **changes) -> Pod:
    values = {
        "name": f"voice-{number}",
        "labels": {WORK_CLASS: WorkClass.INFERENCE},
        "address": f"127.1.0.{number}",
        "phase": "Running",
        "is_ready": True,
        "is_leaving": False,
    }
    return Pod(**{**values, **changes})


def lent(directory: EngineDirectory) -> str | None:
    with directory.least_busy() as base_url:
        return base_url


def test_streams_spread_over_the_ready_engines():
    directory = EngineDirectory()
    directory.update([engine(1), engine(2)])
    with directory.least_busy() as first, directory.least_busy() as second:
        assert {first, second} == {"http://127.1.0.1:8080", "http://127.1.0.2:8080"}
    assert lent(directory) == "http://127.1.0.1:8080"


def test_engines_that_leave_or_load_get_no_stream():
    directory = EngineDirectory()
    labels = {WORK_CLASS: WorkClass.INFERENCE, DRAINING: "true"}
    directory.update(
        [
            engine(1, is_ready=False),
            engine(2, is_leaving=True),
            engine(3, labels=labels),
            engine(4, labels={WORK_CLASS: WorkClass.CLEANING}),
        ]
    )
    assert (lent(directory), directory.ready) == (None, 0)


def test_the_board_shows_every_gpu_and_decision():
    shot = Snapshot(gpus={"serving": 1, "fill": 3}, decisions=("1 → 2 engines: 7 streams",), evictions=1)
    console = Console(width=140, record=True, file=None, force_terminal=False, quiet=False)
    with console.capture() as capture:
        console.print(as_table(shot))
    assert capture.get().count("█ ") >= 4
    assert "1 → 2 engines: 7 streams" in capture.get()
    assert "1 serving, 3 fill" in as_line(shot)
