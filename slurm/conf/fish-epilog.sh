#!/bin/sh
# Leave a line that a job's end was seen here. Its whole time is added to every reclaim: put slow checks into a unit of
# their own and only start that unit here.
logger -t fish-epilog "job ${SLURM_JOB_ID:-?} restart ${SLURM_JOB_RESTART_COUNT:-0} left GPU ${SLURM_JOB_GPUS:-none}"
exit 0
