"""Compiling the pieces of a step, and recording a whole step so that one launch replays all of it."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import torch

P = ParamSpec("P")
R = TypeVar("R")

_WARM_UPS = 3
"""Runs before a recording: the first compiles, the others let libraries choose and set up what they need."""
_MOST_VARIANTS = 64
"""Compiled forms of one function: two shapes for each size of batch. Beyond the limit torch would run it uncompiled."""


def compiled(function: Callable[P, R], /) -> Callable[P, R]:
    """Return `function` compiled for the shapes of its first call."""
    torch._dynamo.config.recompile_limit = _MOST_VARIANTS
    torch._dynamo.config.fail_on_recompile_limit_hit = True
    return torch.compile(function, dynamic=False, fullgraph=True)


def compiled_for_all_sizes(function: Callable[P, R], /) -> Callable[P, R]:
    """Return `function` compiled once for tensors of any size."""
    torch._dynamo.config.recompile_limit = _MOST_VARIANTS
    return torch.compile(function, dynamic=True, fullgraph=True)


class Recorder:
    """Records graphs that run one after another and so may share their temporary memory."""

    def __init__(self) -> None:
        self._pool = torch.cuda.graph_pool_handle()

    def record(self, run: Callable[[], None]) -> Callable[[], None]:
        """Return what replays the work that `run` gives the device; whatever `run` does on the host happens now only."""
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(_WARM_UPS):
                run()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            run()
        return graph.replay
