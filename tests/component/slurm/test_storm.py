"""Real cleaning workers under preemption at random instants: nothing lost, nothing doubled, hardly anything done twice."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path

NODES, GPUS_PER_NODE = 1, 3
SPEECH = Path(__file__).parents[2] / "data/librivox"
WORKER = (sys.executable, "-m", "fish_cleaning")
QUICK = Path(__file__).parents[3] / "cleaning_jobs/fish_cleaning/recipes/quick.yaml"


def test_preemption_at_random_instants_loses_and_doubles_nothing(site, filling, repeats):
    preemptions, chance = repeats(200), random.Random(3)
    recordings, output = site.root / "recordings", site.root / "out"
    corpus = ["make-corpus", "--source", str(SPEECH), "--out", str(recordings), "--min-s", "1.2", "--max-s", "3"]
    subprocess.run([*WORKER, *corpus, "--items", str(20 * preemptions)], check=True, timeout=600)
    recipe = site.root / "slow.yaml"
    recipe.write_text(QUICK.read_text() + "\nmax_speed: 10\n")
    done = site.root / "runs" / site.name
    with filling(max_workers=3, worker=WORKER, input=str(recordings), output=str(output), recipe=str(recipe)):
        site.until(lambda: len(site.jobs("RUNNING", "clean")) == 3, "three workers")
        while _restarts(site) < preemptions:
            time.sleep(chance.expovariate(1.0))
            site.srun_training(chance.randint(1, 3), f"date +%s; sleep {chance.random() / 2}")
        assert not _is_complete(done), "the job was done before the last preemption; make the corpus larger"
        site.until(lambda: _is_complete(done), "the whole job", timeout_s=280)
    command = [*WORKER, "verify", "--input", str(recordings), "--output", str(output), "--json"]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    verdict = json.loads(ran.stdout)
    print(f"after {preemptions} preemptions: {verdict}")
    assert (verdict["items_lost"], verdict["items_doubled"], ran.returncode) == (0, 0, 0)
    assert verdict["work_redone_ratio"] <= 0.02


def _restarts(site) -> int:
    return sum(map(int, site.cluster.command("squeue", "-h", "-p", "clean", "-O", "RestartCnt").split()))


def _is_complete(runs: Path) -> bool:
    return any('"complete"' in summary.read_text() for summary in runs.glob("*.json"))
