"""GET /v1/progress and /metrics, answered from threads that end with the process."""

import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from fish_cleaning.errors import BadSetting
from fish_cleaning.progress import Progress
from fish_contracts.reports import PROGRESS_PATH

Page = Callable[[], tuple[str, bytes]]
"""Returns a content type and a body."""


def serve_progress(progress: Progress, *, host: str, port: int) -> None:
    """Answer with the progress report in the background."""
    _serve({PROGRESS_PATH: lambda: ("application/json", progress.report().to_json().encode())}, host=host, port=port)


def serve_metrics(registry: CollectorRegistry, *, host: str, port: int) -> None:
    """Answer with the metrics in the background."""
    _serve({"/metrics": lambda: (CONTENT_TYPE_LATEST, generate_latest(registry))}, host=host, port=port)


def _serve(pages: Mapping[str, Page], *, host: str, port: int) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = pages.get(self.path)
            content_type, body = page() if page else ("text/plain", f"no such page; try {', '.join(pages)}\n".encode())
            self.send_response(200 if page else 404)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - named by http.server
            """Stay silent: the operator asks every second."""

    try:
        server = ThreadingHTTPServer((host, port), Handler)
    except (OSError, OverflowError) as error:
        raise BadSetting(f"cannot listen on {host}:{port}: {error}; expected an address of this machine") from error
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name=f"http-{port}", daemon=True).start()
