"""Sorting within kernels: one small function, because NumPy's takes a second to compile."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from noren.kernel import kernel

SHORT = 16
"""Runs of so many keys are sorted by insertion before they are merged."""


@kernel
def stable_order(keys):
    """The places of the keys in ascending order; equal keys keep their order. The keys are numbers."""
    n = len(keys)
    order, other = np.empty(n, np.int64), np.empty(n, np.int64)
    for start in range(0, n, SHORT):
        for i in range(start, min(start + SHORT, n)):
            key = keys[i]
            j = i
            while j > start and key < keys[order[j - 1]]:
                order[j] = order[j - 1]
                j -= 1
            order[j] = i
    width = SHORT
    while width < n:
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            i, j = start, middle
            for k in range(start, stop):
                if i < middle and (j >= stop or not keys[order[j]] < keys[order[i]]):
                    other[k] = order[i]
                    i += 1
                else:
                    other[k] = order[j]
                    j += 1
        order, other = other, order
        width *= 2
    return order
