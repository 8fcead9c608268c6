"""The batch file, character by character, and what it refuses to be made from."""

import subprocess

import pytest
from inline_snapshot import snapshot

from fish_slurm.batch_file import batch_file, read_label
from fish_slurm.errors import BadSetting


def test_the_batch_file_is_this(worker_job):
    assert batch_file(worker_job(slot=3, qos="clean", memory_mib=4096)) == snapshot("""\
#!/bin/bash
# A worker of the cleaning job librivox, written by fish-slurm. `sbatch THIS_FILE` runs it by hand.
#SBATCH --job-name=fish-librivox
#SBATCH --comment=fish:job=librivox;slot=3
#SBATCH --partition=clean
#SBATCH --gres=gpu:1
#SBATCH --cpus-per-task=2
#SBATCH --output=/shared/fish/runs/librivox/%j.log
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --qos=clean
#SBATCH --mem=4096M

export FISH_CHECKPOINT='/data/librivox clean'
export FISH_CHECKPOINT_BUDGET_S=10
export TERMINATION_LOG="/shared/fish/runs/librivox/$SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0}.json"
[ -n "${CUDA_VISIBLE_DEVICES:-}" ] || exit 75
exec python3 -m fish_cleaning run \\
    --input /data/librivox \\
    --output '/data/librivox clean' \\
    --recipe quick \\
    --host "127.$((1 + SLURM_JOB_ID / 65536 % 254)).$((SLURM_JOB_ID / 256 % 256)).$((SLURM_JOB_ID % 256))" \\
    --port 8080 --metrics-port 9090
""")


def test_it_is_valid_shell_whatever_the_paths_hold(worker_job):
    script = batch_file(worker_job(input="/data/it's $HOME; rm -rf `x`", output='/a "b"', recipe="my recipe.yaml"))
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0


def test_the_worker_gets_its_arguments_as_they_were_meant(worker_job, tmp_path):
    odd = "/data/it's $HOME `x`"
    job = worker_job(input=odd, worker=("/bin/echo",), run_folder=str(tmp_path))
    environment = {"SLURM_JOB_ID": "70000", "CUDA_VISIBLE_DEVICES": "0", "PATH": "/bin:/usr/bin"}
    said = subprocess.run(
        ["bash"], input=batch_file(job), text=True, check=True, capture_output=True, env=environment
    ).stdout
    assert f"--input {odd} --output" in said
    assert "--host 127.2.17.112 --port 8080" in said


def test_a_worker_that_was_told_of_no_gpu_goes_back_into_the_queue(worker_job):
    environment = {"SLURM_JOB_ID": "1", "PATH": "/bin:/usr/bin"}
    job = worker_job(worker=("/bin/echo", "ran"))
    ran = subprocess.run(["bash"], input=batch_file(job), text=True, check=False, capture_output=True, env=environment)
    assert (ran.returncode, ran.stdout) == (75, "")


def test_a_label_is_read_as_it_was_written(worker_job):
    assert read_label(worker_job(slot=12).label) == ("librivox", 12)


@pytest.mark.parametrize(
    "comment", ["(null)", "", "fish:job=x", "fish:job=A;slot=1", "fish:job=a;slot=1\n", "x fish:job=a;slot=1"]
)
def test_other_comments_are_no_labels(comment):
    assert read_label(comment) is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": 'quo"te'}, "use 1 to 40 of a-z"),
        ({"name": "new\nline"}, "use 1 to 40 of a-z"),
        ({"name": ""}, "use 1 to 40 of a-z"),
        ({"input": "/data\n#SBATCH --uid=0"}, "in one line"),
        ({"recipe": ""}, "in one line"),
        ({"partition": "clean --uid=0"}, "letters, digits"),
        ({"run_folder": "runs"}, "absolute path"),
        ({"run_folder": "/runs/%j"}, "letters, digits"),
        ({"gpus": 0}, "at least 1"),
        ({"checkpoint_budget_s": 2}, "never below 5 s"),
    ],
)
def test_what_no_batch_file_could_hold_is_refused_with_the_value(worker_job, changes, message):
    with pytest.raises(BadSetting, match=message) as refused:
        worker_job(**changes)
    assert repr(next(iter(changes.values())))[1:-1] in str(refused.value)
