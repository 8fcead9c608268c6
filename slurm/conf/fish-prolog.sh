#!/bin/sh
# Refuse a node whose GPU still holds a process of a job that is over. A status other than 0 drains the node and
# holds the job, so nothing here may fail for another reason. About 5 ms without nvidia-smi's look at the GPU.
gpus=${SLURM_JOB_GPUS:-}
[ -n "$gpus" ] || exit 0
command -v nvidia-smi >/dev/null 2>&1 || exit 0
left=$(timeout 2 nvidia-smi --id="$gpus" --query-compute-apps=pid --format=csv,noheader 2>/dev/null) || exit 0
[ -z "$left" ] && exit 0
logger -t fish-prolog "job ${SLURM_JOB_ID:-?}: GPU $gpus still held by process $(echo "$left" | tr '\n' ' ')"
exit 1
