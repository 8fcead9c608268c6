"""The command-line backend against programs that print what a Slurm printed, and against none."""

import os
from pathlib import Path

import pytest

from fish_slurm.command_line import CommandLine, run_command
from fish_slurm.errors import MissingPart, SlurmFailed
from fish_slurm.view import Label


@pytest.fixture
def programs(tmp_path):
    """Put programs by these names, each a line of shell, into a folder; return an environment that finds them first."""

    def install(**lines: str) -> dict[str, str]:
        for name, line in lines.items():
            path = tmp_path / name
            path.write_text(f'#!/bin/sh\necho "$(basename $0) $*" >> {tmp_path}/calls\n{line}\n')
            path.chmod(0o755)
        return {"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": "/home/fish", "SQUEUE_FORMAT": "%i", "SECRET": "x"}

    return install


@pytest.fixture
def backend(programs, recorded, monkeypatch):
    """A backend for the recorded cluster, as the user whose jobs they are."""
    monkeypatch.setattr(os, "getuid", lambda: 0)
    table, labels = recorded / "squeue-22.05.8.txt", recorded / "labels-22.05.8.txt"
    squeue = f'case "$*" in *--me*) cat {labels};; *) cat {table};; esac'
    environment = programs(
        squeue=squeue, sinfo=f"cat {recorded}/sinfo-22.05.8.txt", sbatch="env >&2; cat >&2; echo 7\\;here"
    )
    return CommandLine(partition="clean", environment=environment)


def test_own_jobs_are_labelled_and_a_quiet_second_costs_one_call(backend, tmp_path):
    first, second = backend.jobs(), backend.jobs()
    assert first == second
    assert {job.job_id: job.label for job in first}[2] == Label(name="demo", slot=1)
    assert len(_calls(tmp_path)) == 3, "the table, the labels, the table"


def test_nodes_of_the_cleaning_partition_are_asked_for(backend, tmp_path):
    assert [node.name for node in backend.nodes()] == ["n1", "n2"]
    assert "--partition=clean" in _calls(tmp_path)[0]


def test_the_id_of_a_submitted_job_is_read_with_and_without_a_cluster_name(backend):
    assert backend.submit("#!/bin/sh\n") == 7


def test_a_refusal_carries_slurms_own_words(programs):
    environment = programs(sbatch="echo 'sbatch: error: invalid partition specified: fill' >&2; exit 1")
    with pytest.raises(SlurmFailed, match="invalid partition specified: fill"):
        CommandLine(partition="fill", environment=environment).submit("#!/bin/sh\n")


def test_workers_get_nothing_of_the_submitters_shell_but_the_plain_things(programs, tmp_path):
    environment = programs(sbatch=f"env > {tmp_path}/environment; echo 7")
    CommandLine(partition="clean", environment=environment).submit("#!/bin/sh\n")
    names = {line.partition("=")[0] for line in (tmp_path / "environment").read_text().splitlines()}
    assert {"PATH", "HOME"} <= names
    assert not {"SECRET", "SQUEUE_FORMAT"} & names


def test_a_users_formats_do_not_reach_the_commands(programs):
    environment = programs(squeue='echo "${SQUEUE_FORMAT:-none} $SLURM_TIME_FORMAT"')
    assert run_command(["squeue"], environment=environment) == "none %s\n"


def test_a_missing_program_is_named_with_its_package():
    with pytest.raises(MissingPart, match="squeue not found; install slurm-client"):
        run_command(["squeue"], environment={"PATH": "/nowhere"})


def test_a_slurm_that_does_not_answer_is_an_error_in_time(programs):
    environment = programs(squeue="exec sleep 60")
    with pytest.raises(SlurmFailed, match=r"squeue did not answer within 0.2 s"):
        run_command(["squeue"], environment=environment, timeout_s=0.2)


def _calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text().splitlines()
