"""slurmctld restarts under a filler. A cluster of its own: 22.05 may count GPUs wrongly for a while after it."""


def test_the_filler_outlives_a_restart_of_slurmctld(site, filling):
    with filling(max_workers=8) as filler:
        site.until(lambda: site.cleaning_gpus() == site.gpus, "a cluster full of cleaning")
        site.cluster.stop_daemon("slurmctld")
        site.cluster.start_controller()
        site.sbatch_training(2, then="sleep 1")[1]()
        site.until(lambda: site.cleaning_gpus() == site.gpus, "the refill")
        assert filler.poll() is None
    assert sorted(_slots(site)) == list(range(8))


def _slots(site) -> list[int]:
    comments = site.cluster.command("squeue", "-h", "-o", "%k").split()
    return [int(comment.rpartition("=")[2]) for comment in comments if comment.startswith(f"fish:job={site.name};")]
