"""Cleaning as preemptible fill under training on a Slurm cluster: the batch file, the guard, the filler, the audit."""
