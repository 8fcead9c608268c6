"""`fish-slurm trial` as a person runs it, and the filler's metrics as Prometheus reads them."""

import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from fish_slurm.trial import cluster as trial

NODES, GPUS_PER_NODE = 1, 2


def test_a_trial_cluster_runs_until_it_is_told_to_stop_and_leaves_nothing_behind():
    if reason := trial.missing_parts():
        pytest.skip(reason)
    command = [sys.executable, "-m", "fish_slurm", "trial", "--nodes", "1", "--gpus", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        slurm_conf = running.stdout.readline().strip().removeprefix("export SLURM_CONF=")
        environment = os.environ | {"SLURM_CONF": slurm_conf}
        said = subprocess.run(
            ["sinfo", "-h", "-o", "%P %G"], env=environment, capture_output=True, text=True, check=True
        )
        running.send_signal(signal.SIGTERM)
        assert running.wait(timeout=30) == 0
    assert "clean gpu:fake:1" in said.stdout
    assert not Path(slurm_conf).exists()


def test_the_filler_shows_its_numbers(site, filling, free_tcp_port):
    with filling(max_workers=2, metrics_port=free_tcp_port):
        site.until(lambda: site.cleaning_gpus() == 2, "a cluster full of cleaning")
        site.until(lambda: _gpus(free_tcp_port).get("cleaning") == 2, "the filler to see it")
        assert _gpus(free_tcp_port)["idle"] == 0


def _gpus(port: int) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    return {state: float(value) for state, value in re.findall(r'fish_slurm_gpus\{state="(\w+)"\} (\S+)', text)}
