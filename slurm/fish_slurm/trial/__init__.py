"""A whole Slurm on one host, with fake GPUs, for trying the settings and for tests. Never for production.

Real slurmctld, slurmd and munged of the distribution, under one folder, on ports and with a key of their own, without
systemd. A fake GPU is a character device that behaves like /dev/null; making one takes root.
"""
