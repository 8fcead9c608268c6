"""How much of a recording was cut off at the top of its range."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fish_cleaning.clip import Clip, Reason, Reject

VERSION: Final = 1

_FLAT_RUN_SAMPLES: Final = 3  # sound touches its peak for a sample or two; only an overdriven input rests there
_FLAT_TOLERANCE: Final = (
    2e-4  # of the peak: a few steps of 16 bits, so that dither and a later change of gain hide nothing
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClippingConfig:
    """How much clipping is too much."""

    max_clipped_ratio: float = 0.0005

    def __post_init__(self) -> None:
        """Refuse what is no share."""
        if not 0 <= self.max_clipped_ratio <= 1:
            raise ValueError(f"max_clipped_ratio {self.max_clipped_ratio}: expected a share from 0 to 1")


def measure_clipping(clip: Clip, config: ClippingConfig) -> Clip | Reject:
    """Count samples that lie in flat tops, at whatever level the recording was cut and scaled since."""
    level = np.abs(clip.samples)
    peak = float(level.max())
    if peak == 0.0:
        return clip
    at_peak = level >= peak * (1 - _FLAT_TOLERANCE)
    # A run of flags starts where the flag rises and ends where it falls.
    edges = np.flatnonzero(np.diff(at_peak, prepend=False, append=False))
    run_samples = edges[1::2] - edges[::2]
    clipped_ratio = float(run_samples[run_samples >= _FLAT_RUN_SAMPLES].sum()) / len(level)
    if clipped_ratio > config.max_clipped_ratio:
        detail = f"{clipped_ratio:.4%} of samples, accepted up to {config.max_clipped_ratio:.4%}"
        return Reject(reason=Reason.CLIPPED, detail=detail)
    return replace(clip, clipped_ratio=clipped_ratio)
