#!/bin/sh
# Make the QOS of fish-qos.conf. Run once as a Slurm administrator; safe to run again.
# The Preempt lists are fish_contracts.priority.MAY_PREEMPT; a test compares.
set -eu

for qos in train serve clean; do
    sacctmgr -i add qos "$qos" || true  # says "already exists" the second time
done
# UsageFactor=0: fill work lowers nobody's fair share. NoReserve: waiting cleaning plans no backfill reservation.
sacctmgr -i modify qos clean set Priority=0 PreemptMode=requeue UsageFactor=0 Flags=NoReserve
sacctmgr -i modify qos train set Priority=1000 Preempt=clean
sacctmgr -i modify qos serve set Priority=1000 Preempt=clean
