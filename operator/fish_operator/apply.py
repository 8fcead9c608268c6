"""`Plan` → API server. Acts and reports failures; decides nothing.

An action that fails is logged, counted and left to the next round, which looks again. Within an action the order matters
where a crash could come between: the note on a victim is written before its eviction, the draining mark before the end.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import structlog

from fish_contracts.labels import DRAINING
from fish_operator.api import ApiServer, customs, pod, pods_in
from fish_operator.errors import ApiError
from fish_operator.notes import RECLAIM, write_note
from fish_operator.objects import Images, pod_manifest
from fish_operator.plan import (
    CreateEngine,
    CreateWorker,
    DrainEngine,
    EvictWorker,
    Plan,
    PodAction,
    RemovePod,
    StatusAction,
    WriteDeploymentStatus,
)
from fish_operator.status_json import Json, changed_fields
from fish_operator.status_pace import StatusPace

_log = structlog.get_logger("fish_operator.apply")


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """How acting went."""

    is_accounted: bool
    """Every status that was due is written."""
    refusals: Mapping[str, str]
    """By owner uid: why a pod of its could not be created."""


class Applier:
    """Does what plans say."""

    def __init__(self, *, api: ApiServer, images: Images, count_failure: Callable[[str], None]) -> None:
        self._api = api
        self._images = images
        self._count_failure = count_failure
        self._pace = StatusPace()
        self._failing: frozenset[str] = frozenset()
        """What failed in the round before, so that a failure that lasts is logged once."""

    async def apply(self, plan: Plan) -> Applied:
        """Act on pods, then write what is due of the statuses."""
        answers = await asyncio.gather(*(self._attempt(action) for action in plan.pods))
        due = self._pace.due(plan.statuses, at_s=time.monotonic())
        written = await asyncio.gather(*(self._attempt(action) for action in due))
        self._failing = frozenset(filter(None, (*answers, *written)))
        return Applied(
            is_accounted=not any(written),
            refusals={
                action.owner_uid: problem
                for action, problem in zip(plan.pods, answers, strict=True)
                if problem and isinstance(action, CreateEngine | CreateWorker)
            },
        )

    async def _attempt(self, action: PodAction | StatusAction) -> str | None:
        """Return why the API server refused, None where it did not."""
        name = type(action).__name__
        try:
            await self._act(action)
        except ApiError as error:
            if error.message not in self._failing:
                _log.warning("action failed", action=name, error=str(error))
            self._count_failure(name)
            return error.message
        return None

    async def _act(self, action: PodAction | StatusAction) -> None:
        match action:
            case CreateEngine() | CreateWorker():
                await self._api.create(pods_in(action.owner.namespace), pod_manifest(action, self._images))
            case EvictWorker():
                await self._evict(action)
            case DrainEngine():
                await self._drain(action)
            case RemovePod():
                await _ignoring_gone(self._api.delete(pod(action.pod.key), uid=action.pod.uid, grace_s=0))
            case _:
                await self._write_status(action)

    async def _evict(self, action: EvictWorker) -> None:
        note: dict[str, Json] = {"metadata": {"annotations": {RECLAIM: write_note(action.note)}}}
        await _ignoring_gone(self._api.patch(pod(action.pod.key), note))
        await _ignoring_gone(self._api.evict(action.pod.key, uid=action.pod.uid))

    async def _drain(self, action: DrainEngine) -> None:
        mark: dict[str, Json] = {"metadata": {"labels": {DRAINING: "true"}}}
        await _ignoring_gone(self._api.patch(pod(action.pod.key), mark))
        await _ignoring_gone(self._api.delete(pod(action.pod.key), uid=action.pod.uid))

    async def _write_status(self, action: StatusAction) -> None:
        plural = "ttsdeployments" if isinstance(action, WriteDeploymentStatus) else "cleaningjobs"
        changes = changed_fields(action.before, action.status)
        await _ignoring_gone(self._api.patch(f"{customs(plural, action.key)}/status", {"status": changes}))


async def _ignoring_gone(request: Awaitable[None]) -> None:
    """Await a request; that its object is gone, or another one has its name by now, is as good as done."""
    try:
        await request
    except ApiError as error:
        if not (error.is_gone or error.is_conflict):
            raise
