"""The optional SPANK plugin, built against the installed headers and loaded by a real sbatch."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fish_slurm.trial import cluster as trial

SOURCE = Path(__file__).parents[3] / "slurm/spank"


@pytest.fixture(scope="module")
def slurm() -> Iterator[trial.TrialCluster]:
    """A Slurm with the plugin."""
    if reason := trial.missing_parts():
        pytest.skip(reason)
    if not Path("/usr/include/slurm/spank.h").exists() or not shutil.which("cc"):
        pytest.skip("needs the Debian packages gcc libslurm-dev")
    root = Path(tempfile.mkdtemp(prefix="fish-slurm-"))
    try:
        shutil.copytree(SOURCE, root / "spank", ignore=shutil.ignore_patterns("*.so"))
        subprocess.run(["make", "-C", str(root / "spank")], check=True, capture_output=True)
        (root / "plugstack.conf").write_text(f"optional {root}/spank/fish_spank.so budget_s=12\n")
        plan = trial.plan_here(root, nodes=1, gpus_per_node=1, settings=[f"PlugStackConfig={root}/plugstack.conf"])
        with trial.running(plan) as running:
            yield running
    finally:
        shutil.rmtree(root, ignore_errors=True)


def test_a_yielding_job_goes_to_the_cleaning_partition_and_knows_its_budget(site):
    output = site.root / "said.log"
    output.touch(mode=0o666)
    script = "exec sh -c 'echo $FISH_CLASS $FISH_CHECKPOINT $FISH_CHECKPOINT_BUDGET_S'"
    request = ["--fish-yield=/my/checkpoint", "--gres=gpu:1", "-o", str(output), "--wrap", script]
    job = site.cluster.command("sbatch", "--parsable", *request).strip()
    site.until(lambda: output.read_text().endswith("\n"), "the job's word")
    assert output.read_text() == "cleaning /my/checkpoint 12\n"
    shown = site.cluster.command("scontrol", "-o", "show", "job", job)
    assert "Partition=clean" in shown
    assert "AdminComment=fish:class=cleaning;checkpoint=/my/checkpoint" in shown


def test_a_yielding_script_that_would_lose_its_checkpoint_is_refused(site):
    refused = site.cluster.attempt("sbatch", "--fish-yield=/ck", "--gres=gpu:1", "--wrap", "python3 work.py")
    assert "would run as a child of the shell" in refused.stderr


def test_an_empty_checkpoint_is_refused_by_sbatch_itself(site):
    refused = site.cluster.attempt("sbatch", "--fish-yield=", "--wrap", "exec true")
    assert refused.returncode != 0
    assert "needs the place of the job's checkpoint" in refused.stderr


def test_training_is_untouched_by_the_plugin(site):
    assert site.srun_training(1) > 0
