"""The filler as a process against a real Slurm: it fills, refills, adopts, and never takes."""

import random
import signal
import subprocess
import sys
import time


def test_idle_gpus_are_cleaning_within_1500_ms_of_the_end_of_training(site, filling, repeats, figure):
    latencies = []
    with filling(max_workers=16):
        for _ in range(repeats(40)):
            site.until(lambda: site.cleaning_gpus() == site.gpus, "a cluster full of cleaning")
            job, started_s = site.sbatch_training(4, then="sleep 3")
            started_s()
            site.until(lambda: job not in site.jobs("RUNNING", "train"), "the end of training")  # noqa: B023
            ended_s = time.time()
            site.until(lambda: site.cleaning_gpus() == site.gpus, "the refill")
            last_start_s = max(at_s for at_s, event, _, _ in site.starts_and_ends() if event == "start")
            latencies.append(max(0.0, last_start_s - ended_s))
    assert figure("refill after training", latencies) <= 1.5


def test_a_killed_filler_is_followed_by_one_that_adopts_its_jobs(site, filling):
    with filling(max_workers=10) as first:
        site.until(lambda: site.cleaning_gpus() == site.gpus, "a cluster full of cleaning")
        first.send_signal(signal.SIGKILL)
    with filling(max_workers=10):
        site.until(lambda: len(_slots(site)) == 10, "all workers in the queue")
        site.sbatch_training(4, then="sleep 1")[1]()
        site.until(lambda: site.cleaning_gpus() == site.gpus, "the refill")
    assert sorted(_slots(site)) == list(range(10)), "a slot has two jobs, or none"


def test_fillers_killed_at_any_instant_leave_each_slot_with_one_job(site, filling, repeats):
    chance = random.Random(5)
    for _ in range(repeats(60)):
        with filling(max_workers=12) as filler:
            time.sleep(0.3 + chance.random() * 2)
            filler.kill()
            filler.wait()
            site.srun_training(chance.randint(1, 4))
    with filling(max_workers=12):
        site.until(lambda: site.cleaning_gpus() == site.gpus, "a cluster full of cleaning")
        site.until(lambda: sorted(_slots(site)) == list(range(12)), "one job a slot")


def test_workers_of_a_node_that_goes_down_come_back(site, filling):
    with filling(max_workers=8):
        site.until(lambda: site.cleaning_gpus() == site.gpus, "a cluster full of cleaning")
        site.cluster.command("scontrol", "update", "nodename=n2", "state=down", "reason=test")
        site.until(lambda: site.cleaning_gpus() == 4, "the end of half the workers")
        # ReturnToService=2: the node comes back by itself as soon as its slurmd reports.
        site.until(lambda: site.cleaning_gpus() == site.gpus, "both nodes full of cleaning")
        assert sorted(_slots(site)) == list(range(8))


def test_a_drained_node_gets_no_new_work_and_is_used_again_when_resumed(site, filling):
    site.cluster.command("scontrol", "update", "nodename=n2", "state=drain", "reason=Kill task failed")
    with filling(max_workers=8, buffer=0):
        site.until(lambda: site.cleaning_gpus() == 4, "the other node full of cleaning")
        assert not site.jobs("PENDING", "clean"), "workers were submitted for GPUs of a drained node"
        site.cluster.command("scontrol", "update", "nodename=n2", "state=resume")
        site.until(lambda: site.cleaning_gpus() == site.gpus, "both nodes full of cleaning")


def test_a_reservation_for_inference_is_never_touched(site, filling):
    reservation = ["reservationname=inference", "starttime=now", "duration=60", "users=nobody", "nodes=n2"]
    site.cluster.command("scontrol", "create", "reservation", *reservation)
    try:
        with filling(max_workers=8, buffer=4):
            site.until(lambda: site.cleaning_gpus() == 4, "the other node full of cleaning")
            site.until(lambda: len(site.jobs("PENDING", "clean")) == 4, "the buffer, and no more for reserved GPUs")
            assert {gpu.partition("/")[0] for _, _, _, gpu in site.starts_and_ends()} == {"n1"}
    finally:
        site.cluster.command("scontrol", "delete", "reservationname=inference")


def test_a_second_filler_on_the_same_run_folder_is_refused(site, filling):
    with filling(max_workers=1):
        site.until(lambda: len(_slots(site)) == 1, "the first filler's worker")
        command = [sys.executable, "-m", "fish_slurm", "fill", str(site.root / "backlog.yaml"), "--metrics-port", "0"]
        second = subprocess.run(
            command, check=False, env=site.cluster.environment, capture_output=True, text=True, timeout=60
        )
    assert second.returncode == 78
    assert "another filler works with" in second.stderr


def _slots(site) -> list[int]:
    comments = site.cluster.command("squeue", "-h", "-o", "%k").split()
    return [int(comment.rpartition("=")[2]) for comment in comments if comment.startswith(f"fish:job={site.name};")]
