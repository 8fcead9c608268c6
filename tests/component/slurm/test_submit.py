"""`fish-slurm submit` and `check`, and the guard, as a user and an administrator meet them."""

import subprocess
import sys

import pytest

NODES, GPUS_PER_NODE = 1, 2
REQUEST = ("sbatch", "--parsable", "-p", "clean", "--gres=gpu:1")
ALLOWED_SCRIPT = "export FISH_CHECKPOINT=/out; exec sleep 60"


@pytest.fixture
def fish_slurm(site):
    """Run fish-slurm against the cluster."""

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "fish_slurm", *arguments]
        environment = site.cluster.environment
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)

    return run


@pytest.fixture
def submit(fish_slurm, site):
    """Run `fish-slurm submit` for a folder with one recording, with the real worker unless told otherwise."""

    def run(*arguments: str, recipe: str = "quick") -> "subprocess.CompletedProcess[str]":
        (site.root / "in").mkdir(exist_ok=True)
        (site.root / "in/broken.wav").write_bytes(b"RIFF")
        folders = ["--input", str(site.root / "in"), "--output", str(site.root / "out"), "--recipe", recipe]
        return fish_slurm("submit", "--name", "one", *folders, "--run-folder", str(site.root / "runs"), *arguments)

    return run


def test_a_submitted_cleaning_job_runs_to_its_end(submit, site):
    said = submit()
    assert said.returncode == 0, said.stderr
    summary = site.root / f"runs/one/{said.stdout.strip()}.0.json"
    site.until(summary.exists, "the summary")
    assert '"outcome": "complete"' in summary.read_text()


def test_the_printed_script_can_be_submitted_by_hand(submit, site):
    (site.root / "runs/one").mkdir(parents=True, exist_ok=True)
    (site.root / "by-hand.sh").write_text(submit("--print").stdout)
    assert site.cluster.command("sbatch", "--parsable", str(site.root / "by-hand.sh")).strip().isdigit()


def test_an_unknown_recipe_is_refused_before_anything_is_submitted(submit, site):
    said = submit(recipe="nonsense")
    assert said.returncode == 78
    assert "nonsense" in said.stderr
    assert not site.cluster.command("squeue", "-h").strip()


def test_a_missing_partition_is_said_and_nothing_is_submitted(submit, site):
    said = submit("--partition", "fill")
    assert said.returncode != 0
    assert "invalid partition" in said.stderr
    assert not site.cluster.command("squeue", "-h").strip()


def test_the_same_submission_twice_submits_nothing_twice(submit, site):
    site.cluster.command("scontrol", "update", "nodename=n1", "state=drain", "reason=test")
    try:
        assert len(submit("--workers", "3").stdout.split()) == 3
        again = submit("--workers", "3")
        assert "has its 3 workers in the queue already" in again.stderr
        assert len(site.cluster.command("squeue", "-h").split("\n")) == 3 + 1
    finally:
        site.cluster.command("scontrol", "update", "nodename=n1", "state=resume")


def test_check_finds_a_trial_clusters_one_deviation(fish_slurm):
    said = fish_slurm("check")
    assert said.returncode == 1
    assert said.stdout.splitlines()[0] == "ProctrackType: proctrack/linuxproc"
    assert said.stdout.splitlines()[-1] == "1 deviations"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ([*REQUEST, "--wrap", "export FISH_CHECKPOINT=/out; python3 work.py"], "would run as a child of the shell"),
        ([*REQUEST, "--no-requeue", "--wrap", ALLOWED_SCRIPT], "--no-requeue is not allowed"),
        ([*REQUEST, "--wrap", "exec sleep 60"], "needs FISH_CHECKPOINT"),
        (["srun", "-p", "clean", "--gres=gpu:1", "true"], "must be an sbatch job"),
    ],
)
def test_the_guard_tells_a_user_why(site, command, reason):
    refused = site.cluster.attempt(*command, user="nobody")
    assert refused.returncode != 0
    assert reason in refused.stderr


def test_a_user_cannot_move_her_cleaning_job_to_training(site):
    job = site.cluster.command(*REQUEST, "-o", "/dev/null", "--wrap", ALLOWED_SCRIPT, user="nobody").strip()
    moved = site.cluster.attempt("scontrol", "update", f"jobid={job}", "partition=train", user="nobody")
    assert moved.returncode != 0
    assert site.cluster.command("squeue", "-h", "-j", job, "-o", "%P").strip() == "clean"


def test_a_user_can_neither_stop_nor_delay_the_training_of_others(site):
    job, started_s = site.sbatch_training(1, then="sleep 60")
    started_s()
    for command in (["scancel", job], ["scontrol", "requeue", job], ["scontrol", "hold", job]):
        site.cluster.attempt(*command, user="nobody")
    assert site.jobs("RUNNING", "train") == [job]


def test_a_guard_that_fails_at_run_time_refuses_cleaning_only(site):
    guard = site.cluster.plan.etc / "job_submit.lua"
    whole = guard.read_text()
    guard.write_text(whole.replace("local function class_of(job)", "local function class_of(job)\n   error('a bug')"))
    try:
        refused = site.cluster.attempt(*REQUEST, "--wrap", ALLOWED_SCRIPT)
        assert "internal error in the guard" in refused.stderr
        site.srun_training(1)
    finally:
        guard.write_text(whole)
