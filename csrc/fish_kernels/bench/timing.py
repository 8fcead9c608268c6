"""Times graphs of many launches, arms interleaved, and returns medians."""

from collections.abc import Callable, Mapping
from statistics import median

import torch

WARM_UP_REPLAYS = 3


def capture(launches: Callable[[], None]) -> torch.cuda.CUDAGraph:
    """Return a graph of the launches, run once on a side stream first so that everything is set up."""
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        launches()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launches()
    return graph


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def interleaved_medians_us(graphs: Mapping[str, torch.cuda.CUDAGraph], replays: int) -> dict[str, float]:
    """Return the median time of a replay of each graph; one replay of every arm, then the next round."""
    events: dict[str, list[tuple[torch.cuda.Event, torch.cuda.Event]]] = {arm: [] for arm in graphs}
    for round_index in range(WARM_UP_REPLAYS + replays):
        for arm, graph in graphs.items():
            start, end = _event(), _event()
            start.record()
            graph.replay()
            end.record()
            if round_index >= WARM_UP_REPLAYS:
                events[arm].append((start, end))
    torch.cuda.synchronize()
    return {arm: median(start.elapsed_time(end) for start, end in pairs) * 1e3 for arm, pairs in events.items()}
