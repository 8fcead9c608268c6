"""What the demo showed, as one record that goes to demo/report.json, and what in it breaks our promises. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import quantiles
from typing import Final

RECLAIM_BAR_S: Final = 15.0
"""95th percentile from load seen to engine ready that two cores with nothing else to do should keep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Counts and times of one run. Seconds are wall-clock seconds on the machine that ran it."""

    scale_ups: int
    scale_downs: int
    evictions: int
    reclaims: int
    """Engines that were started on a GPU taken from a cleaning worker: each may cost one eviction and no more."""
    reclaim_s: Sequence[float]
    """Load seen to engine pod ready, one for each reclaim."""
    reclaim_stage_s: Mapping[str, Sequence[float]]
    streams_total: int
    streams_cut: int
    first_audio_s: Mapping[str, float]
    items_expected: int
    items_committed: int
    items_rejected: int
    items_lost: int
    items_doubled: int
    work_redone_ratio: float
    gpu_state_seconds: Mapping[str, float]
    """GPU-seconds in each state; the states sum to GPUs × time."""
    stage_s: Mapping[str, float]

    @property
    def gpu_seconds_used(self) -> float:
        """Return the share of GPU time that served or cleaned."""
        total_s = sum(self.gpu_state_seconds.values())
        useful_s = sum(self.gpu_state_seconds.get(state, 0) for state in ("serving", "fill"))
        return useful_s / total_s if total_s else 0.0

    def to_json(self) -> str:
        """Write the report as indented JSON."""
        return json.dumps(asdict(self), indent=2, default=dict) + "\n"


def percentile(values: Sequence[float], percent: int) -> float:
    """Return the percentile by linear interpolation; 0 for no values."""
    if len(values) < 2:
        return values[0] if values else 0.0
    return quantiles(values, n=100, method="inclusive")[percent - 1]


def broken_promises(report: Report) -> Sequence[str]:
    """Say in a sentence each what should not have happened; empty after a good run."""
    checks = (
        (report.scale_ups >= 2, f"the operator scaled up {report.scale_ups} times, at least 2 expected"),
        (report.scale_downs >= 1, "the operator never scaled down"),
        (report.evictions >= 2, f"{report.evictions} cleaning workers were evicted, at least 2 expected"),
        (
            report.evictions <= report.reclaims,
            f"{report.evictions} cleaning workers were evicted for {report.reclaims} engines that needed a GPU",
        ),
        (report.streams_total > 0, "no stream ran"),
        (report.streams_cut == 0, f"{report.streams_cut} streams were cut"),
        (report.items_expected > 0, "the cleaning job had no items"),
        (report.items_lost == 0, f"{report.items_lost} items were lost"),
        (report.items_doubled == 0, f"{report.items_doubled} items were committed twice"),
    )
    return [sentence for holds, sentence in checks if not holds]


def is_slow(report: Report) -> bool:
    """Tell whether reclaiming took longer than it should on two cores with nothing else to do; slow is not wrong."""
    return percentile(report.reclaim_s, 95) > RECLAIM_BAR_S
