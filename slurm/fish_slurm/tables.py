"""Reads what squeue and sinfo print (pure).

Fixed columns, not JSON: for 2,000 jobs Slurm's JSON has over ten megabytes and its fields change with every release, while
these columns have been the same from 22.05 on. No column holds text that a user chose, so no job name can break a row.
The header is compared, so that a Slurm which prints something else is an error and not a wrong number.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from fish_slurm.batch_file import read_label
from fish_slurm.errors import UnreadableOutput
from fish_slurm.view import Job, Label, Node, Phase

Column = tuple[str, int, str]
"""What to ask for, how wide, and the header that comes back."""

JOB_COLUMNS: Final[tuple[Column, ...]] = (
    ("JobID", 12, "JOBID"),
    ("JobArrayID", 80, "JOBID"),
    ("UserID", 12, "UID"),
    ("State", 20, "STATE"),
    ("Reason", 40, "REASON"),
    ("Partition", 48, "PARTITION"),
    ("tres-per-job", 48, "TRES_PER_JOB"),
    ("tres-per-node", 48, "TRES_PER_NODE"),
    ("tres-per-task", 48, "TRES_PER_TASK"),
    ("NumNodes", 12, "NODES"),
    ("NumTasks", 12, "TASKS"),
    ("RestartCnt", 12, "RESTART_COUNT"),
    ("exit_code", 12, "EXIT_CODE"),
    ("SubmitTime", 24, "SUBMIT_TIME"),
    ("StartTime", 24, "START_TIME"),
)
NODE_COLUMNS: Final[tuple[Column, ...]] = (
    ("NodeList", 64, "NODELIST"),
    ("Gres", 120, "GRES"),
    ("GresUsed", 120, "GRES_USED"),
    ("StateComplete", 80, "STATECOMPLETE"),
    ("Reason", 80, "REASON"),
)

_PENDING: Final = {"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
_RUNNING: Final = {"RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "STAGE_OUT", "SIGNALING", "RESIZING", "STOPPED"}
_ENDED: Final = {
    *("COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL"),
    *("DEADLINE", "OUT_OF_MEMORY", "REVOKED"),
}
_WORKING_NODE: Final = {"idle", "mixed", "allocated", "completing", "planned", "cloud", "dynamic_norm"}
_NO_TIME: Final = {"N/A", "Unknown", "NONE", "0"}
_UNSET: Final = 2**32 - 8  # counts above are Slurm's words for "not set"


def format_option(columns: Sequence[Column]) -> str:
    """Return the `-O` argument for these columns."""
    return ",".join(f"{field}:{width}" for field, width, _ in columns)


def parse_jobs(text: str, labels: Mapping[int, Label] | None = None) -> tuple[Job, ...]:
    """Return the jobs of a squeue table; `labels` names those that are the filler's own."""
    known = labels or {}
    return tuple(_job(row, known) for row in _rows("squeue", text, JOB_COLUMNS))


def parse_nodes(text: str) -> tuple[Node, ...]:
    """Return the nodes of a sinfo table."""
    return tuple(
        Node(
            name=name,
            gpus=count_gpus(gres),
            used_gpus=count_gpus(used),
            takes_work=set(state.split("+")) <= _WORKING_NODE,
            reason="" if reason == "none" else reason,
        )
        for name, gres, used, state, reason in _rows("sinfo", text, NODE_COLUMNS)
    )


def parse_labels(text: str) -> dict[int, Label]:
    """Return the labels among lines of `%A|%k`: id and comment. Lines that are no label of ours are others' comments."""
    labels = {}
    for line in text.splitlines():
        job_id, _, comment = line.partition("|")
        label = read_label(comment)
        if job_id.isdigit() and label:
            labels[int(job_id)] = Label(name=label[0], slot=label[1])
    return labels


@cache  # a table repeats a few spellings thousands of times
def count_gpus(tres: str) -> int:
    """Count GPUs in any of Slurm's spellings: gpu:4, gpu:h100:4(S:0-1), gres:gpu:2, gres/gpu:h100:2, gres/gpu=2."""
    total = 0
    for entry in re.sub(r"\([^)]*\)", "", tres).split(","):
        words = re.split(r"[:=]", entry.removeprefix("gres:").removeprefix("gres/"))
        if words[0] == "gpu":
            total += int(words[-1]) if words[-1].isdigit() else 1
    return total


@cache
def count_array_tasks(array_id: str) -> int:
    """Count what a pending array may run at once: 7 is 1, 5_3 is 1, 5_[1-6] is 6, 5_[1-10:3,20%2] is 2."""
    match = re.fullmatch(r"\d+_\[([^%\]]*)(?:%(\d+))?\]", array_id)
    if match is None:
        return 1
    tasks = 0
    for part in match[1].split(","):
        bounds = re.fullmatch(r"(\d+)-(\d+)(?::(\d+))?", part)
        tasks += (int(bounds[2]) - int(bounds[1])) // int(bounds[3] or 1) + 1 if bounds else 1
    return min(tasks, int(match[2])) if match[2] else tasks


def _rows(command: str, text: str, columns: Sequence[Column]) -> Iterator[list[str]]:
    lines = text.splitlines()
    found = _cells(lines[0], columns) if lines else []
    wanted = [header[:width] for _, width, header in columns]
    if [cell.replace(" ", "") for cell in found] != wanted:
        raise UnreadableOutput(
            f"{command} printed the columns {found}, expected {wanted}; is this Slurm older than 22.05?"
        )
    for line in lines[1:]:
        if line.strip():
            yield _cells(line, columns)


def _cells(line: str, columns: Sequence[Column]) -> list[str]:
    cells, at = [], 0
    for _, width, _ in columns:
        cells.append(line[at : at + width].strip())
        at += width
    return cells


def _job(row: list[str], labels: Mapping[int, Label]) -> Job:
    job_id, array_id, user_id, state, reason, partition, per_job, per_node, per_task, nodes, tasks, *rest = row
    restarts, exit_code, submitted, started = rest
    phase = _phase(state)
    gpus = count_gpus(per_job) or count_gpus(per_node) * _count(nodes) or count_gpus(per_task) * _count(tasks)
    return Job(
        job_id=_number("JobID", job_id),
        user_id=_number("UserID", user_id),
        phase=phase,
        state=state,
        reason=reason,
        partition=partition,
        gpus=gpus * count_array_tasks(array_id),
        restarts=_number("RestartCnt", restarts),
        exit_status=_exit_status(exit_code),
        submitted_at_s=_number("SubmitTime", submitted),
        started_at_s=None if started in _NO_TIME else _number("StartTime", started),
        label=labels.get(int(job_id)),
    )


def _phase(state: str) -> Phase:
    for states, phase in ((_PENDING, Phase.PENDING), (_RUNNING, Phase.RUNNING), (_ENDED, Phase.ENDED)):
        if state in states:
            return phase
    return Phase.OTHER


def _count(text: str) -> int:
    value = int(text) if text.isdigit() else 1
    return 1 if value > _UNSET else value


def _number(column: str, text: str) -> int:
    if not text.isdigit():
        raise UnreadableOutput(f"squeue column {column} holds {text!r}, expected a number")
    return int(text)


def _exit_status(text: str) -> int:
    """Read 65:0 and 0:9, as newer Slurms print it, or a whole wait status such as 16640, as 22.05 does."""
    status, _, signal = text.partition(":")
    if signal:
        return -_number("exit_code", signal) or _number("exit_code", status)
    wait_status = _number("exit_code", text)
    return -(wait_status & 0x7F) or wait_status >> 8
