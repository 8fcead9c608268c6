"""What the operator counted, read from its Prometheus page."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import httpx
from prometheus_client.parser import text_string_to_metric_families

from fish_contracts.reports import METRICS_PORT


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorCounters:
    """Counts since the operator's start, or between two readings."""

    scale_ups: int
    scale_downs: int
    evictions: int
    gpu_state_seconds: Mapping[str, float]

    @classmethod
    def from_page(cls, page: str) -> Self:
        """Read a page in Prometheus' text format."""
        sums: dict[tuple[str, str], float] = defaultdict(float)
        for family in text_string_to_metric_families(page):
            for sample in family.samples:
                label = sample.labels.get("direction") or sample.labels.get("state") or ""
                sums[sample.name, label] += sample.value
        return cls(
            scale_ups=int(sums["fish_scale_decisions_total", "up"]),
            scale_downs=int(sums["fish_scale_decisions_total", "down"]),
            evictions=int(sums["fish_evictions_total", ""]),
            gpu_state_seconds={
                state: seconds for (name, state), seconds in sums.items() if name == "fish_gpu_state_seconds_total"
            },
        )

    def since(self, before: Self) -> Self:
        """Return what was counted after `before`."""
        return type(self)(
            scale_ups=self.scale_ups - before.scale_ups,
            scale_downs=self.scale_downs - before.scale_downs,
            evictions=self.evictions - before.evictions,
            gpu_state_seconds={
                state: round(seconds - before.gpu_state_seconds.get(state, 0), 2)
                for state, seconds in self.gpu_state_seconds.items()
            },
        )


async def read_counters(client: httpx.AsyncClient, address: str) -> OperatorCounters:
    """Ask the operator at this address."""
    response = await client.get(f"http://{address}:{METRICS_PORT}/metrics")
    response.raise_for_status()
    return OperatorCounters.from_page(response.text)
