"""The part of the demo that runs while streams run: apply the examples, play the wave, wait, read the results."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Self

import httpx

from fish_local.cluster import Cluster
from fish_local.demo.board import Snapshot
from fish_local.demo.engines import EngineDirectory
from fish_local.demo.kube import KubeReader, Reclaim, connect
from fish_local.demo.listeners import SENTENCES, Crowd
from fish_local.demo.operator_metrics import OperatorCounters, read_counters
from fish_local.demo.scene import NAMESPACE, Scene, example
from fish_local.demo.stages import StageClock
from fish_local.demo.watcher import Watcher
from fish_local.demo.wave import Phase
from fish_local.errors import CommandFailed

DEPLOYMENT: Final = "voice"
JOB: Final = "librivox"
OPERATOR: Final = "app.kubernetes.io/name=fish-tts-operator"
# Seconds of audio a second: what makes each fake GPU a scarce thing and leaves the machine's two cores to the engines.
WORKER_SPEED: Final = 8
PATIENCE_S: Final = 150


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the run left to be reported."""

    counters: OperatorCounters
    reclaims: Sequence[Reclaim]
    shots: Sequence[Snapshot]
    crowd: Crowd
    speech: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """Everything that the acts share."""

    cluster: Cluster
    scene: Scene
    clock: StageClock
    kube: KubeReader
    client: httpx.AsyncClient
    crowd: Crowd
    watcher: Watcher

    @classmethod
    @asynccontextmanager
    async def staged(
        cls, cluster: Cluster, scene: Scene, clock: StageClock, show: Callable[[Snapshot], None]
    ) -> AsyncIterator[Self]:
        """Open the connections that a run needs."""
        async with connect(cluster.kubeconfig) as api, httpx.AsyncClient() as client:
            kube, crowd = KubeReader(api), Crowd(engines=EngineDirectory(), client=client)
            watcher = Watcher(
                kube=kube, crowd=crowd, gpus_total=len(cluster.status().gpus), deployment=DEPLOYMENT, job=JOB, show=show
            )
            yield cls(cluster=cluster, scene=scene, clock=clock, kube=kube, client=client, crowd=crowd, watcher=watcher)

    async def perform(self, wave: Sequence[Phase]) -> Outcome:
        """Run all acts in order, watched from the first one on."""
        try:
            async with asyncio.TaskGroup() as tasks:
                watching = tasks.create_task(self.watcher.watch(), name="watcher")
                outcome = await self._acts(wave)
                watching.cancel()
        except ExceptionGroup as group:
            # The first fault is the one to explain; what follows it was cancelled because of it.
            raise group.exceptions[0] from group
        return outcome

    async def _acts(self, wave: Sequence[Phase]) -> Outcome:
        before = await self._counters()
        with self.clock.stage("first_engine", "Applying examples/tts.yaml and examples/clean.yaml …"):
            await asyncio.to_thread(self._apply)
            await self._until("an engine is ready", lambda: self.crowd.engines.ready > 0)
        with self.clock.stage("wave", "Playing a wave of listeners: quiet, burst, quiet …"):
            await self._listen(wave)
        with self.clock.stage("finish", "Waiting for the cleaning job to finish …"):
            await self._until("the cleaning job is complete", lambda: self._latest.cleaned_percent >= 100)
            await self._until("one engine is left", lambda: self._latest.gpus.get("serving") == 1)
        return Outcome(
            counters=(await self._counters()).since(before),
            reclaims=(await self.kube.voice(DEPLOYMENT)).reclaims,
            shots=self.watcher.shots,
            crowd=self.crowd,
            speech=await self._speak(),
        )

    @property
    def _latest(self) -> Snapshot:
        return self.watcher.shots[-1] if self.watcher.shots else Snapshot()

    def _apply(self) -> None:
        voice = example("tts.yaml", {"spec.model.source": self.scene.checkpoint.as_uri()})
        cleaning = example(
            "clean.yaml",
            {
                "spec.input.uri": self.scene.corpus.as_uri(),
                "spec.output.uri": self.scene.cleaned.as_uri(),
                "spec.pipeline.args": ["--max-speed", str(WORKER_SPEED)],
            },
        )
        self.cluster.kubectl("apply", "-f", "-", stdin=f"{voice}---\n{cleaning}")

    async def _listen(self, wave: Sequence[Phase]) -> None:
        for phase in wave:
            self.watcher.phase = phase.name
            self.crowd.resize(phase.listeners)
            await asyncio.sleep(phase.duration_s)
        self.watcher.phase = "finishing"
        await self.crowd.leave()

    async def _until(self, what: str, holds: Callable[[], bool]) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not holds():  # noqa: ASYNC110 - the condition is what the watcher last saw
                    await asyncio.sleep(0.2)
        except TimeoutError as error:
            raise CommandFailed(
                f"gave up after {PATIENCE_S} s of waiting until {what}; `fish-local status` and "
                f"`kubectl -n {NAMESPACE} logs -l {OPERATOR}` may say why"
            ) from error

    async def _speak(self) -> bytes:
        with self.crowd.engines.least_busy() as base_url:
            # Not streamed, so that the file says how long it is.
            request = {"text": SENTENCES[0], "format": "wav", "seed": 1, "streaming": False}
            answer = await self.client.post(f"{base_url}/v1/tts", json=request, timeout=PATIENCE_S)
        answer.raise_for_status()
        return answer.content

    async def _counters(self) -> OperatorCounters:
        pods = await self.kube.pods(namespace=NAMESPACE, selector=OPERATOR)
        addresses = [pod.address for pod in pods if pod.is_ready and not pod.is_leaving and pod.address]
        if not addresses:
            raise CommandFailed(f"no operator is ready in namespace {NAMESPACE}: {[pod.name for pod in pods]}")
        return await read_counters(self.client, addresses[0])
