"""Training takes what it asks for from a cluster full of cleaning: Slurm's own preemption, set up by slurm/conf."""

import time
from collections.abc import Callable

import pytest


def test_training_by_srun_starts_within_600_ms_on_exactly_the_gpus_it_asks_for(site, repeats, figure):
    latencies = [_reclaim(site, gpus, _by_srun) for gpus in _sizes(repeats(40))]
    assert figure("reclaim by srun", latencies) <= 0.6


def test_training_by_sbatch_starts_within_1300_ms_on_exactly_the_gpus_it_asks_for(site, repeats, figure):
    latencies = [_reclaim(site, gpus, _by_sbatch) for gpus in _sizes(repeats(40))]
    assert figure("reclaim by sbatch", latencies) <= 1.3


def test_training_on_two_whole_nodes_takes_all_eight_gpus_at_once(site, figure):
    site.fill()
    begun_s = time.time()
    first_line_s = site.srun_training(4, nodes=2)
    assert site.cleaning_gpus() == 0
    figure("reclaim of 2 nodes x 4 GPUs by srun", [first_line_s - begun_s])


@pytest.mark.parametrize("partition", ["train", "serve"])
def test_training_and_inference_are_never_stopped(site, partition):
    holder = site.cluster.command(
        "sbatch", "--parsable", "-p", partition, "-N2", "--gres=gpu:4", "--wrap", "exec sleep 600"
    ).strip()
    site.until(lambda: site.jobs("RUNNING", partition) == [holder], "the holder to run")
    site.submit_worker(0)
    waiting, _ = site.sbatch_training(1)
    site.until(lambda: _reason(site, waiting) in {"Resources", "Priority"}, "a look at the queue")
    assert site.jobs("RUNNING", partition) == [holder]
    assert site.cleaning_gpus() == 0


def test_a_pending_cleaning_job_is_never_ahead_of_a_training_job(site):
    site.fill()
    for slot in range(site.gpus, site.gpus + 4):
        site.submit_worker(slot)
    _, started_s = site.sbatch_training(4)
    training_s = started_s()
    assert not [
        at_s for at_s, event, job, _ in site.starts_and_ends() if event == "start" and int(job) > site.gpus * 99
    ]
    late = [at_s for at_s, event, _, _ in site.starts_and_ends()[site.gpus :] if event == "start"]
    assert all(at_s > training_s for at_s in late)


def _sizes(count: int) -> list[int]:
    return [1 + number % 4 for number in range(count)]


def _by_srun(site, gpus: int) -> float:
    return site.srun_training(gpus)


def _by_sbatch(site, gpus: int) -> float:
    return site.sbatch_training(gpus)[1]()


def _reclaim(site, gpus: int, train: Callable) -> float:
    """Fill the cluster, let training take GPUs, and return how long it waited."""
    if not site.starts_and_ends():
        site.fill()
    site.refill()
    seen = len(site.starts_and_ends())
    begun_s = time.time()
    first_line_s = train(site, gpus)
    ends = [at_s for at_s, event, _, _ in site.starts_and_ends()[seen:] if event == "end"]
    assert len(ends) == gpus, f"training asked for {gpus} GPUs and {len(ends)} workers were stopped"
    assert max(ends) < first_line_s, "training started on a GPU that cleaning still held"
    return first_line_s - begun_s


def _reason(site, job: str) -> str:
    return site.cluster.command("squeue", "-h", "-j", job, "-o", "%r").strip()
