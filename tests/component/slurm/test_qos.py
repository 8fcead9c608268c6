"""The rule in QOS mode, with a real slurmdbd and MariaDB."""

import signal
import subprocess
import sys
import time

MODE = "qos"
NODES, GPUS_PER_NODE = 1, 3


def test_training_takes_what_it_asks_for_and_cleaning_comes_back(site, filling, figure):
    with filling(max_workers=3):
        site.until(lambda: site.cleaning_gpus() == 3, "a node full of cleaning")
        begun_s = time.time()
        figure("reclaim by srun, QOS mode", [site.srun_training(2) - begun_s])
        assert [event for _, event, _, _ in site.starts_and_ends()].count("end") == 2
        site.until(lambda: site.cleaning_gpus() == 3, "the refill")


def test_the_cluster_differs_from_the_recommendation_only_in_what_a_trial_lacks(site):
    command = [sys.executable, "-m", "fish_slurm", "check"]
    environment = site.cluster.environment
    said = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert said.stdout.splitlines()[-1] == "1 deviations", said.stdout + said.stderr
    assert said.stdout.startswith("ProctrackType")


def test_cleaning_under_the_qos_of_training_is_refused(site):
    script = ["--wrap", "export FISH_CHECKPOINT=/out\nexec sleep 60"]
    refused = site.cluster.attempt("sbatch", "-p", "clean", "-q", "train", "--gres=gpu:1", *script)
    assert "runs under QOS clean only, not under train" in refused.stderr


def test_reclaim_and_refill_go_on_without_the_accounting_database(site, filling):
    with filling(max_workers=3):
        site.until(lambda: site.cleaning_gpus() == 3, "a node full of cleaning")
        site.cluster.stop_daemon("slurmdbd", signal.SIGKILL)
        site.srun_training(3)
        site.until(lambda: site.cleaning_gpus() == 3, "the refill")
        site.cluster.command("slurmdbd")
