"""The operator's own HTTP: health on one port, metrics on the other, both on the pod's address."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from fish_contracts.reports import HTTP_PORT, METRICS_PORT
from fish_operator.loop import ControlLoop
from fish_operator.telemetry import Telemetry


@asynccontextmanager
async def served(*, host: str, loop: ControlLoop, telemetry: Telemetry) -> AsyncIterator[None]:
    """Serve while the context lasts."""

    async def healthz(_: web.Request) -> web.Response:
        return _answer(is_good=loop.is_alive(), problem="no round of the control loop has gone through for 30 s")

    async def readyz(_: web.Request) -> web.Response:
        return _answer(is_good=loop.is_ready(), problem="no round of the control loop has gone through yet")

    async def page(_: web.Request) -> web.Response:
        return web.Response(body=telemetry.page(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    health = await _start(host, HTTP_PORT, [web.get("/healthz", healthz), web.get("/readyz", readyz)])
    metrics = await _start(host, METRICS_PORT, [web.get("/metrics", page)])
    try:
        yield
    finally:
        await health.cleanup()
        await metrics.cleanup()


def _answer(*, is_good: bool, problem: str) -> web.Response:
    return web.Response(text="ok\n") if is_good else web.Response(text=f"{problem}\n", status=503)


async def _start(host: str, port: int, routes: list[web.RouteDef]) -> web.AppRunner:
    app = web.Application()
    app.add_routes(routes)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, host, port).start()
    return runner
