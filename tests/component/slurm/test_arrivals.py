"""An hour of training that comes and goes, and how long GPUs stood idle in it (only with FISH_SLURM_SCALE=full)."""

import os
import random
import time

import pytest

WHOLE = os.environ.get("FISH_SLURM_SCALE") == "full"
LENGTH_S = float(os.environ.get("FISH_SLURM_ARRIVALS_S", "3600"))
BETWEEN_ARRIVALS_S, TRAINING_S = 60.0, (20.0, 180.0)


@pytest.mark.skipif(not WHOLE, reason="takes an hour; runs with FISH_SLURM_SCALE=full")
@pytest.mark.timeout(2 * LENGTH_S)
def test_idle_gpu_seconds_stay_below_two_percent_while_there_is_backlog(site, filling):
    chance = random.Random(11)
    trainings = site.root / "trainings.log"
    trainings.touch()
    trainings.chmod(0o666)
    with filling(max_workers=24, buffer=8):
        site.until(lambda: site.cleaning_gpus() == site.gpus, "a cluster full of cleaning")
        begun_s = time.time()
        while time.time() < begun_s + LENGTH_S:
            gpus, length_s = chance.randint(1, 4), chance.uniform(*TRAINING_S)
            line = f'echo "$(date +%s.%N) $0 {gpus}" >> {trainings}'
            script = f"{line.replace('$0', 'start')}; sleep {length_s:.1f}; {line.replace('$0', 'end')}"
            site.cluster.command("sbatch", "-p", "train", f"--gres=gpu:{gpus}", "-o", "/dev/null", "--wrap", script)
            time.sleep(chance.expovariate(1 / BETWEEN_ARRIVALS_S))
        ended_s = time.time()
    changes = [(at_s, 1 if event == "start" else -1) for at_s, event, _, _ in site.starts_and_ends()]
    for line in trainings.read_text().splitlines():
        at_s, event, gpus = line.split()
        changes.append((float(at_s), int(gpus) * (1 if event == "start" else -1)))
    idle = _idle_gpu_seconds(changes, site.gpus, begun_s, ended_s)
    share = idle / (site.gpus * (ended_s - begun_s))
    print(f"{len(trainings.read_text().splitlines()) // 2} trainings in {ended_s - begun_s:.0f} s: {share:.2%} idle")
    assert share <= 0.02


def _idle_gpu_seconds(changes: list[tuple[float, int]], gpus: int, begun_s: float, ended_s: float) -> float:
    """Add up (GPUs - used) over time from the moments at which work began and ended, by its own word."""
    used, at_s, idle = 0, begun_s, 0.0
    for when_s, change in sorted(changes):
        moment_s = min(max(when_s, begun_s), ended_s)
        idle += (gpus - used) * (moment_s - at_s)
        used, at_s = used + change, moment_s
    return idle + (gpus - used) * (ended_s - at_s)
