"""Stands in for an engine where a test is about the operator: says it is as busy as the test tells it to.

`--loads FILE` holds {address or "*": streams or null}; null, or no file, is an engine whose load cannot be read.
"""

import argparse
import json
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("command", choices=["serve"])
parser.add_argument("--host", required=True)
parser.add_argument("--port", type=int, required=True)
parser.add_argument("--max-streams", type=int, default=4)
parser.add_argument("--loads", type=Path, required=True)
options, _ = parser.parse_known_args()


def load() -> dict[str, object] | None:
    loads = json.loads(options.loads.read_text())
    streams = loads.get(options.host, loads.get("*"))
    if streams is None:
        return None
    active = min(streams, options.max_streams)
    return {
        "active_streams": active,
        "queued_streams": streams - active,
        "max_streams": options.max_streams,
        "is_draining": False,
    }


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = {"status": "ok"} if self.path == "/v1/health" else load()
        self.send_response(503 if body is None else 200)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""


server = ThreadingHTTPServer((options.host, options.port), Handler)
signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
server.serve_forever()
sys.exit(0)
