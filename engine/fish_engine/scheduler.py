"""Who advances in the next step: `plan_step` decides, `Scheduler.commit` acts, and nothing here is a tensor.

    decode    every running request that has only its newest position to store, oldest first; where a new block is needed
              and none is free, the youngest running request gives up its blocks and waits again
    prefill   running requests with more to store, in chunks, until the step's token budget is spent
    admit     waiting requests in order of arrival, while there is a place and blocks for all they know

A chunk ends at a multiple of the chunk size, whoever else is running: so a request is computed in the same pieces alone
and in a crowd, and makes the same frames.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fish_engine.kv_cache import BlockPool, blocks_for
from fish_engine.request import FinishReason, Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a step may use."""

    max_running: int
    block_size: int  # positions
    prefill_chunk: int = 256  # positions
    prefill_budget: int = 1024
    """Prefill positions in one step; the decode of everybody else waits for them. One chunk is always let through."""


class Extension(NamedTuple):
    """Store `length` positions of one request from `start` on; if these are all it knows, draw its next frame.

    A tuple, because a step makes hundreds, and a frozen dataclass takes four times as long to make.
    """

    request_id: int
    start: int
    length: int
    draws_frame: bool
    blocks: tuple[int, ...]
    """The whole table, with any new block at its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPlan:
    """One step. Blocks of `preempted` requests may already appear among the extensions."""

    preempted: tuple[int, ...] = ()
    prefills: tuple[Extension, ...] = ()
    decodes: tuple[Extension, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Nothing to run."""
        return not (self.prefills or self.decodes)


def plan_step(requests: Sequence[Request], free_blocks: Collection[int], limits: Limits) -> StepPlan:
    """Return what to do next, and change nothing. `requests` are in order of arrival; each fits the cache when alone."""
    running = [request for request in requests if request.blocks]
    supply = _Supply(free_blocks)
    preempted = _make_room(running, supply, limits.block_size)
    decodes = [_extension(request, 1, supply, limits) for request in running if _is_decoding(request)]
    prefills, budget = [], limits.prefill_budget
    for request in running:
        if budget > 0 and not _is_decoding(request):
            prefills.append(_extension(request, _chunk(request, limits), supply, limits))
            budget -= prefills[-1].length
    waiting = () if preempted else (request for request in requests if not request.blocks)
    for request in waiting:
        if budget <= 0 or not _is_admissible(request, len(running), supply.count, limits):
            break
        running.append(request)
        prefills.append(_extension(request, _chunk(request, limits), supply, limits))
        budget -= prefills[-1].length
    return StepPlan(preempted=tuple(preempted), prefills=tuple(prefills), decodes=tuple(decodes))


class _Supply:
    """Blocks that this plan may still hand out. Lazy, because most steps look at few of many thousands."""

    def __init__(self, free_blocks: Collection[int]) -> None:
        self.count = len(free_blocks)
        self._free = iter(free_blocks)
        self._given_up: list[int] = []

    def add(self, blocks: Sequence[int]) -> None:
        self._given_up.extend(blocks)
        self.count += len(blocks)

    def take(self, count: int) -> tuple[int, ...]:
        assert count <= self.count
        self.count -= count
        return tuple(self._given_up.pop() if self._given_up else next(self._free) for _ in range(count))


def _make_room(running: list[Request], supply: _Supply, block_size: int) -> list[int]:
    """Drop the youngest of `running` until the decodes of the others find their blocks; return who went."""
    needed = {request.request_id: _missing_blocks(request, block_size) for request in running if _is_decoding(request)}
    missing = sum(needed.values())
    preempted = []
    while missing > supply.count:
        youngest = running.pop()
        preempted.append(youngest.request_id)
        supply.add(youngest.blocks)
        missing -= needed.get(youngest.request_id, 0)
    return preempted


def _is_decoding(request: Request) -> bool:
    return request.frames_made > 0 and request.extend_len == 1


def _is_admissible(request: Request, running: int, free: int, limits: Limits) -> bool:
    """There is a place, and blocks for all it knows, and one more for each of the running to grow into."""
    return running < limits.max_running and _missing_blocks(request, limits.block_size) + running <= free


def _missing_blocks(request: Request, block_size: int) -> int:
    return max(0, blocks_for(request.known_len, block_size) - len(request.blocks))


def _chunk(request: Request, limits: Limits) -> int:
    to_boundary = limits.prefill_chunk - request.cached_len % limits.prefill_chunk
    return min(request.extend_len, to_boundary)


def _extension(request: Request, length: int, supply: _Supply, limits: Limits) -> Extension:
    new = supply.take(_missing_blocks(request, limits.block_size))
    return Extension(
        request_id=request.request_id,
        start=request.cached_len,
        length=length,
        draws_frame=length == request.extend_len,
        blocks=request.blocks + new,
    )


@dataclass(slots=True, kw_only=True)
class Scheduler:
    """The requests in service and the blocks they hold."""

    limits: Limits
    pool: BlockPool
    _requests: dict[int, Request] = field(default_factory=dict)

    @property
    def running_count(self) -> int:
        """Requests that hold blocks."""
        return sum(1 for request in self._requests.values() if request.blocks)

    @property
    def waiting_count(self) -> int:
        """Requests that hold none, new or preempted."""
        return len(self._requests) - self.running_count

    def fits(self, request: Request) -> bool:
        """Tell whether the request can end when it has the whole cache to itself."""
        return blocks_for(request.longest_len, self.limits.block_size) <= self.pool.total

    def add(self, request: Request) -> None:
        """Let a request wait for its turn; ids must grow."""
        assert not self._requests or request.request_id > next(reversed(self._requests))
        assert self.fits(request)
        self._requests[request.request_id] = request

    def remove(self, request_id: int) -> bool:
        """Forget a request and free its blocks; return False where it is gone already."""
        request = self._requests.pop(request_id, None)
        if request is None:
            return False
        self.pool.give_back(request.blocks)
        return True

    def plan(self) -> StepPlan:
        """Plan the next step from the state as it is."""
        return plan_step(tuple(self._requests.values()), self.pool.free, self.limits)

    def commit(self, plan: StepPlan, drawn: Mapping[int, bool]) -> dict[int, FinishReason]:
        """Carry out a plan that was run; return the requests that finished, which are gone then.

        `drawn` tells of each request that drew a frame whether it was the end mark, which is no frame.
        """
        for request_id in plan.preempted:
            request = self._requests[request_id]
            self.pool.give_back(request.blocks)
            request.blocks, request.cached_len = (), 0
        finished: dict[int, FinishReason] = {}
        for extension in (*plan.decodes, *plan.prefills):
            request = self._requests[extension.request_id]
            self.pool.take(extension.blocks[len(request.blocks) :])
            request.blocks = extension.blocks
            request.cached_len += extension.length
            if extension.draws_frame and (reason := _count_frame(request, is_end=drawn[request.request_id])):
                finished[request.request_id] = reason
        for request_id in finished:
            self.remove(request_id)
        return finished


def _count_frame(request: Request, *, is_end: bool) -> FinishReason | None:
    if is_end:
        return FinishReason.END
    request.frames_made += 1
    return FinishReason.LENGTH if request.frames_made == request.frame_limit else None
