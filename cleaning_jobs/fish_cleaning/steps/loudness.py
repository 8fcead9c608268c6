"""Integrated loudness after ITU-R BS.1770-4.

Written out because pyloudnorm loads scipy's filters, a second of CPU at each start of a worker that is stopped and started
all day. The tests hold this against pyloudnorm.
"""

import functools
import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fish_cleaning.clip import Clip, Reason, Reject

VERSION: Final = 1

_BLOCK_S: Final = 0.4
_BLOCKS_PER_STEP: Final = 4  # blocks overlap by three quarters
_STRETCH_STEPS: Final = 300  # 30 s a transform: bounded memory, and a stop request is seen in time
_LEAD_STEPS: Final = 5  # after half a second the filters have forgotten what came before
_ABSOLUTE_GATE_LUFS: Final = -70.0
_RELATIVE_GATE_LU: Final = -10.0
_OFFSET_LU: Final = -0.691


@dataclass(frozen=True, slots=True, kw_only=True)
class LoudnessConfig:
    """How quiet is too quiet."""

    min_loudness_lufs: float = -50.0

    def __post_init__(self) -> None:
        """Refuse a bound below what can be measured."""
        if not _ABSOLUTE_GATE_LUFS <= self.min_loudness_lufs <= 0:
            raise ValueError(f"min_loudness_lufs {self.min_loudness_lufs}: expected {_ABSOLUTE_GATE_LUFS} to 0")


def measure_loudness(clip: Clip, config: LoudnessConfig) -> Clip | Reject:
    """Measure the loudness of the whole recording and turn down what is too quiet to be cleaned."""
    lufs = integrated_loudness(clip.samples, clip.sample_rate_hz)
    if lufs < config.min_loudness_lufs:
        detail = f"{lufs:.1f} LUFS, accepted from {config.min_loudness_lufs} LUFS"
        return Reject(reason=Reason.TOO_QUIET, detail=detail)
    return replace(clip, loudness_lufs=lufs)


def integrated_loudness(samples: NDArray[np.float32], sample_rate_hz: int) -> float:
    """Return the gated loudness in LUFS; minus infinity where every block is below the absolute gate."""
    energies = _block_energies(samples, sample_rate_hz)
    loud = energies[_lufs(energies) >= _ABSOLUTE_GATE_LUFS]
    if len(loud) == 0:
        return -math.inf
    gate = max(_ABSOLUTE_GATE_LUFS, float(_lufs(loud.mean())) + _RELATIVE_GATE_LU)
    return float(_lufs(loud[_lufs(loud) > gate].mean()))


def _lufs(energy: NDArray[np.float64] | np.float64) -> NDArray[np.float64] | np.float64:
    with np.errstate(divide="ignore"):
        level: NDArray[np.float64] = _OFFSET_LU + 10.0 * np.log10(energy)
    return level


def _block_energies(samples: NDArray[np.float32], sample_rate_hz: int) -> NDArray[np.float64]:
    """Return the weighted energy of each whole block of 0.4 s, a new one every 0.1 s."""
    step_samples = int(sample_rate_hz * _BLOCK_S / _BLOCKS_PER_STEP)
    whole_samples = len(samples) // step_samples * step_samples
    stretch_samples, lead_samples = _STRETCH_STEPS * step_samples, _LEAD_STEPS * step_samples
    step_energies: list[NDArray[np.float64]] = []
    for first in range(0, whole_samples, stretch_samples):
        lead = min(first, lead_samples)
        weighted = _weighted(samples[first - lead : min(first + stretch_samples, whole_samples)], sample_rate_hz)[lead:]
        step_energies.append(np.square(weighted).reshape(-1, step_samples).mean(axis=1))
    blocks = np.lib.stride_tricks.sliding_window_view(np.concatenate(step_energies), _BLOCKS_PER_STEP)
    energies: NDArray[np.float64] = blocks.mean(axis=1)
    return energies


def _weighted(samples: NDArray[np.float32], sample_rate_hz: int) -> NDArray[np.float64]:
    """Apply the K weighting in the frequency domain; half a second of zeros takes the filters' tail."""
    padded = 1 << (len(samples) + sample_rate_hz // 2 - 1).bit_length()
    spectrum = np.fft.rfft(samples.astype(np.float64), padded) * _response(padded, sample_rate_hz)
    weighted: NDArray[np.float64] = np.fft.irfft(spectrum, padded)[: len(samples)]
    return weighted


@functools.lru_cache(maxsize=4)
def _response(padded: int, sample_rate_hz: int) -> NDArray[np.complex128]:
    """Return what both filters do to each frequency of a transform of that length."""
    delay = np.exp(-2j * np.pi * np.arange(padded // 2 + 1) / padded)  # one sample's delay at each frequency
    response: NDArray[np.complex128] = np.ones_like(delay)
    for numerator, denominator in (_high_shelf(sample_rate_hz), _high_pass(sample_rate_hz)):
        response *= np.polyval(numerator[::-1], delay) / np.polyval(denominator[::-1], delay)
    return response


def _high_shelf(sample_rate_hz: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the coefficients of the head's filter: +4 dB above 1.5 kHz."""
    gain = 10 ** (4.0 / 40.0)
    angle = 2 * math.pi * 1500.0 / sample_rate_hz
    alpha, cosine = math.sin(angle) / math.sqrt(2), math.cos(angle)  # Q = 1/√2
    root = 2 * math.sqrt(gain) * alpha
    up, down = gain + 1, gain - 1
    numerator = gain * np.array([up + down * cosine + root, -2 * (down + up * cosine), up + down * cosine - root])
    denominator = np.array([up - down * cosine + root, 2 * (down - up * cosine), up - down * cosine - root])
    return numerator, denominator


def _high_pass(sample_rate_hz: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the coefficients of the low cut at 38 Hz with Q 0.5."""
    angle = 2 * math.pi * 38.0 / sample_rate_hz
    alpha, cosine = math.sin(angle), math.cos(angle)
    numerator = np.array([(1 + cosine) / 2, -(1 + cosine), (1 + cosine) / 2])
    return numerator, np.array([1 + alpha, -2 * cosine, 1 - alpha])
