"""EM that takes long steps: every third one extrapolates the path (SQUAREM, on logarithms)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Progress = Callable[[int, float], None]
Step = Callable[[NDArray[np.float64]], tuple[NDArray[np.float64], float]]
"""One EM step: the following table, and the log likelihood of the one given."""
LONGEST = 1e4
LEAST = -575.0
"""Logarithm of the smallest cell a long step may leave, beside the largest: a denormal one would overflow the next."""


def ascend(
    step: Step, x: NDArray[np.float64], tolerance: float, max_steps: int, progress: Progress | None = None
) -> tuple[NDArray[np.float64], int, float]:
    """EM until a step moves no cell by more than `tolerance`. Returns the table, the steps and the last change.

    An extrapolation that lowers the likelihood is taken back.
    """
    total = x.sum()
    best, fallback, change, steps = -np.inf, x, np.inf, 0
    path: list[NDArray[np.float64]] = []
    while steps < max_steps:
        following, value = step(x)
        steps += 1
        if value < best - 1e-9 * abs(best):
            x, path, best = fallback, [], -np.inf
            continue
        best, change = value, float(np.abs(following - x).max())
        path.append(np.log(np.maximum(x, 1e-300)))
        x = following
        if progress is not None:
            progress(steps, change)
        if change <= tolerance:
            break
        if len(path) == 3:
            first, second = path[1] - path[0], path[2] - path[1]
            weight = np.sqrt(x)  # cells on their way to zero move fastest on this scale and matter least
            bend = float(np.linalg.norm(weight * (second - first)))
            length = min(LONGEST, float(np.linalg.norm(weight * first)) / max(bend, 1e-300))
            fallback = x
            if length > 1:
                x = path[0] + 2 * length * first + length**2 * (second - first)
                x = np.exp(np.maximum(x - x.max(), LEAST))
                x *= total / x.sum()
            path = []
    return x, steps, change
