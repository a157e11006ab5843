"""Confidence bounds of simulated figures."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

LEVEL = 0.95


def wilson(share: float, trials: int, level: float = LEVEL) -> tuple[float, float]:
    """Wilson's score interval for a share of independent trials; honest near 0 and 1, where the plain one is not."""
    if trials <= 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + level / 2)
    middle = share + z * z / (2 * trials)
    half = z * sqrt(max(0.0, share * (1 - share)) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)


def mean_bounds(mean: float, std_error: float, level: float = LEVEL) -> tuple[float, float]:
    """Normal bounds for a mean of many independent, bounded figures."""
    z = NormalDist().inv_cdf(0.5 + level / 2)
    return mean - z * std_error, mean + z * std_error
