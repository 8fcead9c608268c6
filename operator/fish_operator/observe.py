"""Cluster → `ClusterView`: four lists, then every engine and worker asked directly and all at once.

The lists are read anew each time, so a decision never rests on a cache that lags behind what was done a moment ago: that
is what makes it safe to decide from nothing after a crash.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

import aiohttp

from fish_contracts.priority import WorkClass
from fish_contracts.reports import HTTP_PORT, LOAD_PATH, PROGRESS_PATH, BadReport, LoadReport, ProgressReport
from fish_operator.api import NODES, PODS, ApiServer, customs
from fish_operator.departures import Departures
from fish_operator.reading import deployment_view, job_view, node_view, pods_on_gpus
from fish_operator.view import ClusterView, PodStage, PodView
from fish_operator.wire import CustomOnWire, NodeOnWire, PodOnWire, read_list

Report = TypeVar("Report", LoadReport, ProgressReport)

_ASKED_ENGINES = frozenset({PodStage.READY, PodStage.UNREADY, PodStage.TERMINATING})


class Observer:
    """Looks at the cluster."""

    def __init__(
        self, *, api: ApiServer, session: aiohttp.ClientSession, departures: Departures, report_timeout_s: float
    ) -> None:
        self._api = api
        self._session = session
        self._departures = departures
        self._report_timeout = aiohttp.ClientTimeout(total=report_timeout_s)

    async def view(self) -> ClusterView:
        """Return everything as it is now; raise `ApiError` when the API server does not say."""
        nodes, pods, deployments, jobs = await asyncio.gather(
            self._api.get(NODES),
            self._api.get(PODS),
            self._api.get(customs("ttsdeployments")),
            self._api.get(customs("cleaningjobs")),
        )
        node_views = tuple(map(node_view, read_list(NodeOnWire, nodes)))
        on_gpus = pods_on_gpus(read_list(PodOnWire, pods), node_views)
        loads, progress = await asyncio.gather(self._loads(on_gpus), self._progress(on_gpus))
        return ClusterView(
            now_s=time.time(),
            monotonic_s=time.monotonic(),
            nodes=node_views,
            pods=on_gpus,
            departed=self._departures.beyond(pod.uid for pod in on_gpus),
            deployments=tuple(map(deployment_view, read_list(CustomOnWire, deployments))),
            jobs=tuple(map(job_view, read_list(CustomOnWire, jobs))),
            loads=loads,
            progress=progress,
        )

    async def _loads(self, pods: Iterable[PodView]) -> dict[str, LoadReport]:
        engines = [pod for pod in pods if pod.work_class is WorkClass.INFERENCE and pod.stage in _ASKED_ENGINES]
        return await self._ask(engines, LOAD_PATH, LoadReport.from_json)

    async def _progress(self, pods: Iterable[PodView]) -> dict[str, ProgressReport]:
        workers = [pod for pod in pods if pod.work_class is WorkClass.CLEANING and pod.stage is PodStage.READY]
        return await self._ask(workers, PROGRESS_PATH, ProgressReport.from_json)

    async def _ask(self, pods: Iterable[PodView], path: str, read: Callable[[bytes], Report]) -> dict[str, Report]:
        addressed = [pod for pod in pods if pod.ip]
        reports: Iterable[Report | None] = await asyncio.gather(
            *(self._report(f"http://{pod.ip}:{HTTP_PORT}{path}", read) for pod in addressed)
        )
        return {pod.uid: report for pod, report in zip(addressed, reports, strict=True) if report is not None}

    async def _report(self, url: str, read: Callable[[bytes], Report]) -> Report | None:
        """Return a report, or None where there is none in time: absence is a fact that deciding knows how to take."""
        try:
            async with self._session.get(url, timeout=self._report_timeout) as response:
                return read(await response.read()) if response.status == 200 else None
        except (aiohttp.ClientError, TimeoutError, OSError, BadReport):
            return None
