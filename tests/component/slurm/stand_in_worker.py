"""A cleaning worker reduced to what Slurm sees of it: starts, works, checkpoints in 0.1 s on SIGTERM, exits 75.

Takes and ignores the real worker's arguments, except that `--input` names the file it logs to.
"""

import os
import signal
import sys
import time

CHECKPOINT_S = 0.1


def log(event: str) -> None:
    path = sys.argv[sys.argv.index("--input") + 1]
    gpu = f"{os.environ['SLURMD_NODENAME']}/{os.environ['CUDA_VISIBLE_DEVICES']}"
    line = f"{time.time():.6f} {event} {os.environ['SLURM_JOB_ID']} {gpu}\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.write(descriptor, line.encode())
    os.close(descriptor)


def checkpoint(*_: object) -> None:
    time.sleep(CHECKPOINT_S)
    summary = '{"outcome": "preempted", "items_committed": 1, "items_rejected": 0, "stop_s": 0.1}\n'
    with open(os.environ["TERMINATION_LOG"], "w", encoding="utf-8") as file:  # noqa: PTH123 - pathlib takes 10 ms to load
        file.write(summary)
    log("end")
    os._exit(75)


signal.signal(signal.SIGTERM, checkpoint)
log("start")
while True:
    signal.pause()
