"""Cleaning one item in a process of its own, for items under which workers died before.

Two attempts that never ended may be two preemptions or a recording that crashes the decoder. Here the difference shows: if
the child dies and this process does not, the item is at fault.
"""

import ctypes
import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from fish_cleaning.clip import Cleaned, Item, Reason, Reject
from fish_cleaning.journal import Finished, entries_of, to_frame
from fish_cleaning.recipe import steps_from_json
from fish_cleaning.steps.chain import StepConfigs, clean

_PR_SET_PDEATHSIG: Final = 1
_CHILD: Final = (sys.executable, "-m", "fish_cleaning", "clean-one")


def clean_isolated(
    item: Item, recording: bytes, configs: StepConfigs, *, command: Sequence[str] = _CHILD
) -> Cleaned | Reject:
    """Clean the item in a child process; its death is the item's rejection."""
    request = json.dumps({"item": asdict(item), "steps": asdict(configs)}).encode() + b"\n" + recording
    # In a session of its own a stop signal to our process group passes it by: if it dies, the item was the cause.
    child = subprocess.run(command, input=request, capture_output=True, check=False, start_new_session=True)
    match entries_of(child.stdout):
        case [Finished(result=result)] if child.returncode == 0:
            return result
    return Reject(reason=Reason.CRASH, detail=_cause_of_death(child.returncode))


def die_with_parent() -> None:
    """Ask Linux to end this process when the worker that started it is gone; elsewhere it ends with its item."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def answer(request: bytes) -> bytes:
    """Do the child's part: read one request, return one journal frame."""
    head, _, recording = request.partition(b"\n")
    raw = json.loads(head)
    item = Item(**raw["item"])
    result = clean(item, recording, steps_from_json(json.dumps(raw["steps"])))
    return to_frame(Finished(item_id=item.id, result=result))


def _cause_of_death(return_code: int) -> str:
    if return_code >= 0:
        return f"exit status {return_code}"
    try:
        return f"signal {-return_code} ({signal.Signals(-return_code).name})"
    except ValueError:
        return f"signal {-return_code}"
