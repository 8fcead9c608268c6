"""job_submit.lua, run by the Lua that slurmctld embeds, and its table against the rule."""

import itertools
from collections.abc import Callable

import pytest
from lupa.lua51 import LuaRuntime

from fish_contracts.priority import WorkClass, may_preempt
from fish_slurm.batch_file import batch_file

ACCEPTED, REFUSED = 0, -1
GOOD_SCRIPT = "#!/bin/bash\nexport FISH_CHECKPOINT=/out\nexec python3 worker.py \\\n  --fast\n"


class Guard:
    """The guard as slurmctld loads it: a global `slurm`, two functions, one word back."""

    def __init__(self, source: str) -> None:
        self.said: list[str] = []
        self.lua = LuaRuntime(unpack_returned_tuples=True)
        self.lua.globals().python_says = self.said.append
        self.lua.execute(
            "slurm = {SUCCESS = 0, ERROR = -1, log_user = function(f, ...) python_says(string.format(f, ...)) end,"
            " log_error = function(f, ...) python_says('log: ' .. string.format(f, ...)) end}"
        )
        self.lua.execute(source)

    def submit(self, **job: object) -> tuple[int, dict[str, object]]:
        """Return the guard's answer and the job as it left it."""
        table = self._table(job)
        answer = self.lua.globals().slurm_job_submit(table, None, 1000)
        return answer, dict(table)

    def modify(self, record: dict[str, object], user_id: int = 1000, **job: object) -> int:
        return self.lua.globals().slurm_job_modify(self._table(job), self._table(record), None, user_id)

    def _table(self, values: dict[str, object]) -> object:
        return self.lua.table_from(
            {key: self.lua.table_from(value) if isinstance(value, dict) else value for key, value in values.items()}
        )


@pytest.fixture
def source(slurm_folder) -> str:
    return (slurm_folder / "job_submit.lua").read_text()


@pytest.fixture
def guard(source) -> Guard:
    return Guard(source)


@pytest.fixture
def table_of(source) -> Callable:
    """Read a local table of the guard."""

    def read(name: str) -> dict:
        before_functions = source.partition("local function")[0]
        return Guard(source).lua.execute(f"{before_functions}\nreturn {name}")

    return read


def test_its_table_is_the_rule(table_of):
    table = {claimant: set(holders) for claimant, holders in table_of("MAY_PREEMPT").items()}
    for claimant, holder in itertools.product(WorkClass, WorkClass):
        assert (holder in table.get(claimant, set())) == may_preempt(claimant, holder)


def test_every_class_of_work_has_a_partition(table_of):
    assert set(table_of("PARTITION_OF")) == set(WorkClass)


def test_the_generated_batch_file_passes_and_is_stamped(guard, worker_job):
    answer, job = guard.submit(partition="clean", script=batch_file(worker_job()), requeue=1)
    assert answer == ACCEPTED
    assert job["admin_comment"] == "fish:class=cleaning;checkpoint=/data/librivox clean"


@pytest.mark.parametrize(
    "script",
    [
        GOOD_SCRIPT,
        "#!/bin/sh\ncd /x && export FISH_CHECKPOINT=/out; exec python3 w.py\n",
        "#!/bin/sh\nFISH_CHECKPOINT=/out\ncd /x && exec python3 w.py\n",
        "#!/usr/bin/env python3\nFISH_CHECKPOINT=1\nwork()\n",
        "#!/bin/sh\nFISH_CHECKPOINT=/o\ntrap 'kill -TERM $pid' TERM\npython3 w.py &\npid=$!\nwait $pid\nwait $pid\n",
        "#!/bin/bash\n# FISH_CHECKPOINT=/o\nmodule load cuda\nexec srun python3 w.py\n# the end\n\n",
    ],
)
def test_scripts_that_hear_of_preemption_pass(guard, script):
    assert guard.submit(partition="clean", script=script)[0] == ACCEPTED


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("python3 worker.py", "python3 worker.py"),
        ("python3 worker.py &\nwait", "wait"),
        ("exec python3 worker.py | tee log", "exec python3 worker.py | tee log"),
        ("exec python3 worker.py &", "exec python3 worker.py &"),
        ("exec python3 prepare.py;\npython3 worker.py", "python3 worker.py"),
        ("execute", "execute"),
    ],
)
def test_scripts_that_would_lose_their_checkpoint_are_refused_with_the_reason(guard, command, shown):
    answer, _ = guard.submit(partition="clean", script=f"#!/bin/bash\nexport FISH_CHECKPOINT=/o\n{command}\n")
    assert answer == REFUSED
    assert f"'{shown}' would run as a child of the shell" in guard.said[0]


@pytest.mark.parametrize(("job", "reason"), [
    ({"script": None}, "must be an sbatch job"),
    ({"requeue": 0}, "--no-requeue is not allowed"),
    ({"script": "#!/bin/bash\nexec work\n"}, "needs FISH_CHECKPOINT"),
    ({"script": "#!/bin/bash\n# FISH_CHECKPOINT=/o\n"}, "runs nothing"),
    ({"partition": "train", "environment": {"FISH_CLASS": "cleaning"}}, "runs in partition clean only"),
    ({"partition": "train,clean"}, "name one partition only"),
    ({"partition": None, "environment": {"FISH_CLASS": "mining"}}, "class mining unknown"),
])  # fmt: skip
def test_cleaning_that_could_not_be_preempted_is_refused(guard, job, reason):
    whole = {"partition": "clean", "script": GOOD_SCRIPT} | job
    answer, _ = guard.submit(**{name: value for name, value in whole.items() if value is not None})
    assert answer == REFUSED
    assert reason in guard.said[0]


@pytest.mark.parametrize(
    "job", [{}, {"script": "#!/bin/bash\npython3 train.py\n"}, {"requeue": 0}, {"partition": "train"}]
)
def test_training_passes_whatever_it_is_and_is_stamped(guard, job):
    answer, after = guard.submit(**job)
    assert (answer, after["partition"], after["admin_comment"]) == (ACCEPTED, "train", "fish:class=training")


def test_work_in_partitions_of_the_site_passes_unmoved(guard):
    assert guard.submit(partition="debug,viz")[1]["partition"] == "debug,viz"


def test_what_the_spank_plugin_says_counts_like_the_environment(guard):
    answer, job = guard.submit(script=GOOD_SCRIPT, spank_job_env={1: "OTHER=1", 2: "FISH_CLASS=cleaning"})
    assert (answer, job["partition"]) == (ACCEPTED, "clean")


def test_a_path_with_odd_characters_in_the_generated_file_passes(guard, worker_job):
    job = worker_job(input="/data/a & b; c | d", output="/out;x")
    answer, after = guard.submit(partition="clean", script=batch_file(job))
    assert (answer, after["admin_comment"]) == (ACCEPTED, "fish:class=cleaning;checkpoint=/out_x")


def test_with_qos_cleaning_gets_the_cleaning_qos_and_no_other(source):
    guard = Guard(source.replace("local USE_QOS = false", "local USE_QOS = true"))
    assert guard.submit(partition="clean", script=GOOD_SCRIPT)[1]["qos"] == "clean"
    assert guard.submit(partition="clean", script=GOOD_SCRIPT, qos="train")[0] == REFUSED
    assert guard.submit(partition="train")[1]["qos"] == "train"


def test_a_mistake_in_the_guard_refuses_cleaning_and_lets_training_pass(source):
    guard = Guard(source.replace("local function class_of(job)", "local function class_of(job)\n   error('a bug')"))
    assert guard.submit(partition="clean", script=GOOD_SCRIPT)[0] == REFUSED
    assert guard.submit(environment={"FISH_CLASS": "cleaning"}, script=GOOD_SCRIPT)[0] == REFUSED
    assert guard.submit(partition="train", script=GOOD_SCRIPT)[0] == ACCEPTED
    assert guard.submit()[0] == ACCEPTED


@pytest.mark.parametrize(("record", "change", "answer"), [
    ("clean", {"partition": "train"}, REFUSED),
    ("clean", {"requeue": 0}, REFUSED),
    ("train", {"partition": "clean"}, REFUSED),
    ("clean", {"begin_time": 5}, ACCEPTED),
    ("train", {"partition": "debug"}, ACCEPTED),
    ("train", {"requeue": 0}, ACCEPTED),
])  # fmt: skip
def test_a_user_cannot_change_a_job_into_what_would_have_been_refused(guard, record, change, answer):
    assert guard.modify({"partition": record}, **change) == answer


def test_an_administrator_may_change_what_she_likes(guard):
    assert guard.modify({"partition": "clean"}, user_id=0, partition="train") == ACCEPTED
