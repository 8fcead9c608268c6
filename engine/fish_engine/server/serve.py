"""The process: load, listen, and leave in order."""

import asyncio
import atexit
import contextlib
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

import uvicorn
from prometheus_client import start_http_server

from fish_contracts.exit_codes import ExitCode
from fish_engine.errors import EngineError
from fish_engine.loading import EngineConfig, LoadedEngine, load_engine
from fish_engine.server.access import KeyGate, SingleSlashes, check_exposure, read_keys
from fish_engine.server.app import create_app
from fish_engine.server.settings import ServeSettings
from fish_engine.server.studio import Studio
from fish_engine.service import Service
from fish_engine.telemetry import EngineMetrics
from fish_engine.voices.library import VoiceLibrary
from fish_engine.voices.references import ReferenceEncoder

_SMALLEST_VOICE_PARAMETERS: Final = 50_000_000
"""A checkpoint below this is there to test with."""
_KEEP_ALIVE_S: Final = 65
"""Longer than clients keep an idle connection, so that it is they who close it and never in the middle of a request."""


class DrainingServer(uvicorn.Server):
    """Uvicorn, but a signal to stop lets every stream end first, running or queued, and turns new ones away meanwhile."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Take the place of uvicorn's handlers, which would close the door at once."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._service.drain)
        yield

    async def on_tick(self, counter: int) -> bool:
        """Tell, ten times a second, whether it is time to leave. Uvicorn then waits for responses to be sent."""
        return self._service.is_drained or await super().on_tick(counter)


def serve(settings: ServeSettings) -> ExitCode:
    """Serve until told to stop; return how it ended."""
    # Nobody is being served yet, so there is nothing to wait for.
    signal.signal(signal.SIGTERM, _leave)
    try:
        # Bound before loading, so that a port in use is known at once; not listening, so that nobody waits at a closed door.
        listener = _bound_socket(settings.host, settings.port)
        keys = read_keys(settings.api_keys_file) if settings.api_keys_file else frozenset[str]()
        check_exposure(listener.getsockname()[0], has_keys=bool(keys))
        metrics = EngineMetrics()
        loaded = load_engine(_engine_config(settings), metrics)
        folder = settings.voices or _temporary_folder()
        references = ReferenceEncoder(loaded.codec, folder=folder / "codes")
        library = VoiceLibrary(folder / "voices")
        _start_metrics(settings, metrics)
    except (EngineError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return ExitCode.CONFIG
    service = Service(loaded.engine, metrics, max_streams=settings.max_streams, max_queued=settings.max_queued)
    service.start()
    app = create_app(
        Studio(
            loaded=loaded,
            service=service,
            metrics=metrics,
            references=references,
            library=library,
            max_text_chars=settings.max_text_chars,
            max_body_bytes=settings.max_body_mib * 2**20,
        )
    )
    guarded = SingleSlashes(KeyGate(app, keys) if keys else app)
    listener.listen()  # so that whoever reads the next line can connect
    print(_description(loaded, settings), file=sys.stderr, flush=True)
    server_config = uvicorn.Config(
        guarded,
        loop="uvloop",
        ws="websockets-sansio",
        ws_max_size=settings.max_body_mib * 2**20,
        ws_per_message_deflate=False,  # sound does not get smaller, and would come later
        timeout_keep_alive=_KEEP_ALIVE_S,
        log_level="warning",
        access_log=False,
        lifespan="off",
    )
    DrainingServer(server_config, service).run(sockets=[listener])
    service.stop()
    return ExitCode.FAILED if service.has_failed else ExitCode.DONE


def _leave(_: int, __: FrameType | None) -> NoReturn:
    sys.exit(ExitCode.DONE)


def _bound_socket(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise _cannot_listen(host, port, "--port", error) from error
    return listener


def _temporary_folder() -> Path:
    """Return a folder that is gone when the process ends."""
    folder = tempfile.mkdtemp(prefix="fish-voices-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _start_metrics(settings: ServeSettings, metrics: EngineMetrics) -> None:
    try:
        start_http_server(settings.metrics_port, settings.host, registry=metrics.registry)
    except OSError as error:
        raise _cannot_listen(settings.host, settings.metrics_port, "--metrics-port", error) from error


def _cannot_listen(host: str, port: int, flag: str, error: OSError) -> OSError:
    return OSError(f"cannot listen on {host} port {port}: {error.strerror}; choose another {flag}")


def _engine_config(settings: ServeSettings) -> EngineConfig:
    return EngineConfig(
        checkpoint=settings.checkpoint,
        codec=settings.codec or settings.checkpoint,
        max_streams=settings.max_streams,
        device=settings.device,
        cpu_threads=settings.cpu_threads,
        kv_cache_gib=settings.kv_cache_gib,
    )


def _description(loaded: LoadedEngine, settings: ServeSettings) -> str:
    """Return the one line that says what is served."""
    parameters = sum(parameter.numel() for parameter in loaded.model.parameters())
    line = (
        f"serving {settings.checkpoint} ({parameters / 1e6:.1f} M parameters) on http://{settings.host}:{settings.port}, "
        f"up to {settings.max_streams} streams at once"
    )
    if parameters < _SMALLEST_VOICE_PARAMETERS:
        line += "; these are the random weights of a test checkpoint: right mathematics, noise as sound"
    if settings.api_keys_file is None:
        line += "; no keys are set, so whoever reaches this address may speak"
    return line
