"""Looks at the cluster twice a second: keeps the engine directory fresh and makes the snapshots that are drawn."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import httpx

from fish_contracts.labels import WORK_CLASS
from fish_contracts.priority import WorkClass
from fish_local.demo.board import Snapshot
from fish_local.demo.kube import CleaningStatus, KubeReader, Pod, VoiceStatus
from fish_local.demo.listeners import Crowd

LOOK_EVERY_S: Final = 0.5
SHOWN_DECISIONS: Final = 5


def gpu_state(pod: Pod) -> str | None:
    """Return what the GPU of this pod is doing, None where the pod holds none any more."""
    if pod.phase in {"Succeeded", "Failed"}:
        return None
    if pod.labels.get(WORK_CLASS) == WorkClass.CLEANING:
        states = {"leaving": "checkpointing", "working": "fill"}
    else:
        states = {"leaving": "draining", "working": "serving"}
    if pod.is_leaving:
        return states["leaving"]
    return states["working"] if pod.is_ready else "loading"


def gpus_by_state(pods: Iterable[Pod], total: int) -> Mapping[str, int]:
    """Count GPUs by state; one GPU a pod, the rest is free."""
    held = Counter(state for pod in pods if (state := gpu_state(pod)))
    return {**held, "free": max(0, total - held.total())}


@dataclass(slots=True, kw_only=True)
class Watcher:
    """Draws what it sees through `show`; `shots` keeps everything for the picture."""

    kube: KubeReader
    crowd: Crowd
    gpus_total: int
    deployment: str
    job: str
    show: Callable[[Snapshot], None]
    phase: str = "starting"
    shots: list[Snapshot] = field(default_factory=list)
    _started_s: float = field(default_factory=time.monotonic)

    async def watch(self) -> None:
        """Look until cancelled. A look that the API server does not answer is skipped: the next one shows the same."""
        while True:
            with contextlib.suppress(httpx.HTTPError):
                await self.look()
            await asyncio.sleep(LOOK_EVERY_S)

    async def look(self) -> None:
        """Look once."""
        pods, voice, cleaning = await asyncio.gather(
            self.kube.work_pods(),
            self.kube.voice(self.deployment),
            self.kube.cleaning(self.job),
        )
        self.crowd.engines.update(pods)
        shot = replace(
            _from_status(voice, cleaning),
            elapsed_s=time.monotonic() - self._started_s,
            phase=self.phase,
            listeners=self.crowd.listening,
            gpus=gpus_by_state(pods, self.gpus_total),
            streams_finished=self.crowd.tally.finished,
            streams_cut=self.crowd.tally.cut,
        )
        self.shots.append(shot)
        self.show(shot)


def _from_status(voice: VoiceStatus, cleaning: CleaningStatus) -> Snapshot:
    decisions = [
        f"{entry.from_replicas} → {entry.to_replicas} engines ({entry.reason}): {entry.message}"
        for entry in voice.decisions
    ]
    return Snapshot(
        streams=voice.load.streams,
        queued=voice.load.queued,
        engines_ready=voice.ready_replicas,
        engines_wanted=voice.desired_replicas,
        evictions=cleaning.evictions.total,
        cleaned_percent=cleaning.percent,
        decisions=decisions[:SHOWN_DECISIONS],
    )
