#!/usr/bin/env bash
# stage.sh NAME COMMAND…: run a command and say how long it took, also when it fails.
set -uo pipefail
name=$1
shift
started=$(date +%s.%N)
printf '\n=== %s\n' "$name"
"$@"
status=$?
printf '=== %s: %s after %.1f s\n' "$name" "$([ $status = 0 ] && echo done || echo "FAILED ($status)")" \
    "$(echo "$(date +%s.%N) $started" | awk '{print $1 - $2}')"
exit $status
