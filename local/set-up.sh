#!/usr/bin/env bash
# Make .venv with every room installed for development. Safe to run again; needs no root.
set -euo pipefail
cd "$(dirname "$0")/.."
started=$SECONDS

fail() { printf 'set-up: %s\n' "$*" >&2; exit 78; }

python=${PYTHON:-python3}
command -v "$python" >/dev/null || fail "no $python found. Debian: apt-get install python3 python3-venv"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$("$python" --version) is too old, Python 3.11 or newer is needed (set PYTHON=/path/to/python3.11)"
"$python" -c 'import ensurepip' 2>/dev/null ||
    fail "$python cannot make virtual environments. Debian: apt-get install python3-venv"

if [ ! -x .venv/bin/uv ]; then
    printf 'set-up: making .venv\n'
    "$python" -m venv .venv
    .venv/bin/pip install -q uv
fi
printf 'set-up: installing fish-tts and what it needs (about 5 GB with torch; two minutes the first time)\n'
quiet=-q
[ -t 2 ] && quiet=   # uv draws its own progress bars on a terminal
.venv/bin/uv pip install $quiet --python .venv/bin/python -e '.[engine,operator,cleaning,slurm,local,dev]'
# The demo's report and CI read how long this took.
printf '%s\n' $((SECONDS - started)) >.venv/.ready
printf 'set-up: done in %s s\n' $((SECONDS - started))
