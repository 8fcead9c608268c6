"""From what the cluster shows to what to do next: one pure function over one view and a little history.

The order that does not evict twice: evict → wait until the worker has ended → create the engine's pod. GPUs of workers on
their way out count as coming. Fill pods are created only on GPUs that are free now and that no engine wants.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from fish_operator.fill import Crew, share
from fish_operator.fleet import Fleet, free_names, surplus
from fish_operator.history import History
from fish_operator.notes import ReclaimNote
from fish_operator.plan import CreateEngine, CreateWorker, DrainEngine, EvictWorker, Plan, PodAction, RemovePod
from fish_operator.pools import gpu_states
from fish_operator.scene import Scene, read_scene
from fish_operator.seating import SeatKind
from fish_operator.telling import events, statuses
from fish_operator.victims import Evict, Free
from fish_operator.view import ClusterView, ObjectKey, PodView

STALE_WORKER_S: Final = 5.0
"""A fill pod that is not scheduled after this long was created on a GPU that is not free."""


def decide(view: ClusterView, history: History) -> tuple[Plan, History]:
    """Return what to do now, and what to remember for the next tick."""
    scene = read_scene(view, history)
    engines, workers = _engine_actions(scene), _worker_actions(scene)
    plan = Plan(
        pods=(*engines, *workers, *_removals(scene, engines)),
        statuses=tuple(statuses(scene, workers)),
        events=tuple(events(scene)),
        gpu_states=gpu_states(view),
        unread_metrics=sum(fleet.demand.unread for fleet in scene.fleets),
    )
    return plan, _remembered(scene, engines)


def _remembered(scene: Scene, engines: Sequence[PodAction]) -> History:
    view = scene.view
    evicted = {action.pod.uid: action.note for action in engines if isinstance(action, EvictWorker)}
    return History(
        windows={fleet.deployment.key: fleet.window for fleet in scene.fleets},
        short_since_s=scene.short_since_s,
        freeing={**scene.freeing.under_way, **evicted},
        freed=_still_waiting(scene, engines),
        sightings=scene.sightings,
        accounted=frozenset(pod.uid for pod in (*view.pods, *view.departed) if pod.end is not None),
    )


def _engine_actions(scene: Scene) -> list[PodAction]:
    """Create engines where GPUs are free, make room where none are, drain where there are too many."""
    drains: list[PodAction] = []
    for fleet in scene.fleets:
        one_too_many = surplus(fleet, scene.view)
        drains += [DrainEngine(pod=pod) for pod in (*fleet.half_drained, one_too_many) if pod is not None]
    if scene.unscheduled_workers and scene.seating.is_engine_on_its_way:
        # They could take the very GPU that an engine is about to get. They go first; the next tick goes on.
        return drains
    return [*drains, *chain.from_iterable(_arrivals_of(scene, fleet) for fleet in scene.fleets)]


def _arrivals_of(scene: Scene, fleet: Fleet) -> list[PodAction]:
    actions: list[PodAction] = []
    key, pods = fleet.deployment.key, {pod.uid: pod for pod in scene.view.pods}
    notes = iter([note for note in scene.freeing.freed if note.owner == str(key)])
    names = free_names(f"{key.name}-engine", fleet.engines)
    failures = fleet.backoff.failures
    for seat in scene.seating.of(key, SeatKind.MISSING):
        if isinstance(seat.placement, Free):
            actions.append(_create_engine(scene, fleet, next(names), failures, next(notes, None)))
            failures = 0
        elif isinstance(seat.placement, Evict):
            seen_at_s = scene.short_since_s[key][seat.slot]
            victims = [pods[uid] for uid in seat.placement.victims]
            actions += [_evict(victim, key, seen_at_s=seen_at_s, now_s=scene.view.now_s) for victim in victims]
    return actions


def _create_engine(scene: Scene, fleet: Fleet, name: str, failures: int, note: ReclaimNote | None) -> CreateEngine:
    return CreateEngine(
        owner=fleet.deployment.key,
        owner_uid=fleet.deployment.uid,
        spec=fleet.spec,
        name=name,
        failures=failures,
        note=replace(note, created_at_s=scene.view.now_s) if note else None,
    )


def _evict(victim: PodView, owner: ObjectKey, *, seen_at_s: float, now_s: float) -> EvictWorker:
    note = ReclaimNote(owner=str(owner), victim=victim.key.name, seen_at_s=seen_at_s, evicted_at_s=now_s)
    return EvictWorker(pod=victim, note=note)


def _worker_actions(scene: Scene) -> list[PodAction]:
    """Put a worker on each GPU that no engine wants; take back those that found none."""
    unscheduled = scene.unscheduled_workers
    if scene.seating.is_engine_on_its_way:
        return [RemovePod(pod=pod) for pod in unscheduled]
    stale = [pod for pod in unscheduled if scene.view.now_s - pod.created_at_s > STALE_WORKER_S]
    if unscheduled:
        # Each is about to take a free GPU, but nobody knows yet on which node.
        return [RemovePod(pod=pod) for pod in stale]
    names = {crew.job.key: free_names(f"{crew.job.key.name}-worker", crew.workers) for crew in scene.crews}
    failures = {crew.job.key: crew.backoff.failures for crew in scene.crews}
    return [
        CreateWorker(
            owner=crew.job.key,
            owner_uid=crew.job.uid,
            spec=crew.spec,
            name=next(names[crew.job.key]),
            failures=failures.pop(crew.job.key, 0),
        )
        for crew in share(scene.crews, [pool.free for pool in scene.seating.left])
    ]


def _removals(scene: Scene, engines: Sequence[PodAction]) -> list[PodAction]:
    """Remove ended pods that nothing is to be learned from any more."""
    created = {action.owner for action in engines if isinstance(action, CreateEngine)}
    done: list[PodView] = []
    for fleet in scene.fleets:
        done += fleet.ended_as_asked
        if fleet.missing == 0 or fleet.deployment.key in created:
            done += fleet.backoff.over
    for crew in scene.crews:
        done += _finished_with(crew)
    return [RemovePod(pod=pod) for pod in done if pod.end is not None and not pod.end.was_deleted]


def _finished_with(crew: Crew) -> list[PodView]:
    """Return ended workers that are counted and hold no successor back; those that tell how it ended stay for `kubectl logs`."""
    if crew.is_failed:
        return []
    counted = [end for end in crew.ended if end.pod.uid in crew.job.status.accounted_pods]
    return [end.pod for end in counted if end.outcome != "complete" and end.pod not in crew.backoff.waiting]


def _still_waiting(scene: Scene, engines: Sequence[PodAction]) -> tuple[ReclaimNote, ...]:
    """Return freed GPUs whose engine is still to be created; when none is wanted any more, they are fill work's again."""
    wanting = {str(fleet.deployment.key) for fleet in scene.fleets if fleet.missing}
    taken = {action.note.victim for action in engines if isinstance(action, CreateEngine) and action.note}
    return tuple(note for note in scene.freeing.freed if note.owner in wanting and note.victim not in taken)
