"""The backlog file at the edge: what it becomes, and what is refused by name."""

import pytest

from fish_slurm.backlog import read_backlog
from fish_slurm.errors import BadSetting

GOOD = """
run_folder: /shared/runs
worker: [/opt/fish/bin/python, -m, fish_cleaning]
cleaning_jobs:
  - {name: first, input: /data/a, output: /data/a-clean, recipe: quick, max_workers: 3}
  - {name: second, input: /data/b, output: /data/b-clean, recipe: quick, max_workers: 5, cpus: 8}
"""


@pytest.fixture
def written(tmp_path):
    """Write a backlog file."""

    def write(text: str):
        path = tmp_path / "backlog.yaml"
        path.write_text(text)
        return path

    return write


def test_cleaning_jobs_keep_their_order_and_become_worker_jobs(written):
    backlog = read_backlog(written(GOOD))
    assert list(backlog.work.items()) == [("first", 3), ("second", 5)]
    worker = backlog.worker("second")
    assert (worker.cpus, worker.worker[0], worker.partition) == (8, "/opt/fish/bin/python", "clean")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD.replace("max_workers: 3", "max_workers: 0"), r"cleaning_jobs.0.max_workers: .*found 0"),
        (GOOD.replace("recipe: quick, max_workers: 3", "max_workers: 3"), "cleaning_jobs.0.recipe: Field required"),
        (GOOD.replace("cpus", "cores"), "cleaning_jobs.1.cores: Extra inputs"),
        (GOOD.replace("second", "first"), "same name"),
        (GOOD.replace("name: first", "name: First Job"), "'First Job': use 1 to 40"),
        ("run_folder: /x\ncleaning_jobs: []\n", "cleaning_jobs: .*at least 1"),
        ("a: [", "is not YAML"),
        ("", "the file: "),
    ],
)
def test_what_is_wrong_is_named_by_its_field(written, text, message):
    with pytest.raises(BadSetting, match=message):
        read_backlog(written(text))


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(BadSetting, match=r"none.yaml: No such file"):
        read_backlog(tmp_path / "none.yaml")
