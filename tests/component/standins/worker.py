"""Stands in for a cleaning worker where a test is about the operator: reports progress, leaves with 75 when asked.

It is done (exit 0) when the file `done` exists in its output, and refuses (exit 65) an output with a file `refuse`.
"""

import argparse
import json
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("command", choices=["run"])
parser.add_argument("--host", required=True)
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--output", required=True)
parser.add_argument("--leave-after", type=float, default=0.0)
options, _ = parser.parse_known_args()
output = Path(options.output.removeprefix("file://"))
started_s = time.monotonic()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        report = {
            "units_total": 100,
            "units_committed": 40,
            "items_total": 1000,
            "items_committed": 390,
            "items_rejected": 10,
            "audio_s": 1.0,
            "work_at_risk_s": time.monotonic() - started_s,
        }
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(report).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""


if (output / "refuse").exists():
    sys.exit(65)
asked = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: asked.set())
server = ThreadingHTTPServer((options.host, options.port), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
while not asked.wait(0.1):
    if (output / "done").exists():
        sys.exit(0)
time.sleep(options.leave_after)
sys.exit(75)
