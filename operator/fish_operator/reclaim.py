"""How long each GPU took from a fill worker to an engine, stage by stage. Pure.

Nothing is decided on these times; they are for people. So they may be a little late after a restart, and never wrong in order.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from fish_contracts.priority import WorkClass
from fish_operator.history import History, Sighting
from fish_operator.notes import ReclaimNote
from fish_operator.status import DeploymentStatus, ReclaimEntry, ReclaimStages
from fish_operator.view import ClusterView, PodStage, PodView


@dataclass(frozen=True, slots=True, kw_only=True)
class Freeing:
    """GPUs between their worker and their engine."""

    under_way: Mapping[str, ReclaimNote]
    """By victim uid: still held."""
    freed: tuple[ReclaimNote, ...]
    """Free, and no engine created yet; longest waiting first."""


def follow(view: ClusterView, history: History) -> Freeing:
    """Return which evicted workers have gone since the last tick."""
    pods = {pod.uid: pod for pod in view.pods}
    marked = {pod.uid: pod.note for pod in view.pods if pod.stage is PodStage.TERMINATING and _is_victim(pod)}
    notes = {**history.freeing, **{uid: note for uid, note in marked.items() if note}}
    gone = {uid: note for uid, note in notes.items() if uid not in pods or pods[uid].stage is PodStage.ENDED}
    under_way = {uid: note for uid, note in notes.items() if uid in marked}
    freed = tuple(replace(note, freed_at_s=view.now_s) for note in gone.values())
    return Freeing(under_way=under_way, freed=(*history.freed, *freed))


def _is_victim(pod: PodView) -> bool:
    return pod.work_class is WorkClass.CLEANING and pod.note is not None


def sightings(view: ClusterView, history: History) -> dict[str, Sighting]:
    """Return when the stages of engines on reclaimed GPUs were first seen."""
    engines = [pod for pod in view.pods if pod.work_class is WorkClass.INFERENCE and pod.note]
    return {pod.uid: _sighted(pod, history.sightings.get(pod.uid, Sighting()), view.now_s) for pod in engines}


def _sighted(pod: PodView, before: Sighting, now_s: float) -> Sighting:
    return Sighting(
        scheduled_at_s=before.scheduled_at_s or _no_later(now_s, pod.scheduled_at_s),
        started_at_s=before.started_at_s or _no_later(now_s, pod.started_at_s),
    )


def _no_later(now_s: float, written_s: float | None) -> float | None:
    """Return when something happened that the API server dates to the second and that is seen now."""
    return None if written_s is None else min(now_s, written_s + 1.0)


def arrivals(
    engines: Iterable[PodView], status: DeploymentStatus, seen: Mapping[str, Sighting], *, now_s: float
) -> tuple[ReclaimEntry, ...]:
    """Return the reclaims whose engine is ready and that the status does not list yet."""
    listed = {entry.pod_uid for entry in status.reclaims}
    return tuple(
        _entry(pod, pod.note, seen.get(pod.uid, Sighting()), now_s)
        for pod in engines
        if pod.note and pod.stage is PodStage.READY and pod.uid not in listed
    )


def _entry(pod: PodView, note: ReclaimNote, sighting: Sighting, now_s: float) -> ReclaimEntry:
    ready_at_s = _no_later(now_s, pod.ready_at_s) or now_s
    times = (
        note.seen_at_s,
        note.evicted_at_s,
        note.freed_at_s,
        note.created_at_s,
        sighting.scheduled_at_s,
        sighting.started_at_s,
        ready_at_s,
    )
    in_order = list(accumulate((time or 0.0 for time in times), max))
    decide, free, create, schedule, start, ready = (round(after - before, 3) for before, after in pairwise(in_order))
    return ReclaimEntry(
        pod=pod.key.name,
        pod_uid=pod.uid,
        victim=note.victim,
        started_at=round(note.seen_at_s, 3),
        stages=ReclaimStages(decide=decide, free=free, create=create, schedule=schedule, start=start, ready=ready),
        total_seconds=round(in_order[-1] - in_order[0], 3),
    )
