"""Noised margins in estimates: two independent, unbiased sources for one count are weighed by their variances.

The decoys give a count with a known variance, a noised margin another: c = (v_m x + v_x m) / (v_x + v_m), with the
variance v_x v_m / (v_x + v_m). Discrete Laplace noise has longer tails than the normal, so the quantile is that of
Cornish and Fisher with the fourth cumulant that is left: z + k (z^3 - 3 z) / 24, k = 3 / cells for a sum of cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Fold = tuple[NDArray[np.int64], int]
"""For every value of a column the group it counts in, -1 for none; and how many groups there are."""


@dataclass(frozen=True, eq=False)
class NoisedTable:
    """Counts over the values of some columns with noise of a known variance, independent from cell to cell."""

    names: tuple[str, ...]
    counts: Floats
    variance: float
    """Of the noise of one cell."""
    epsilon: float

    def folded(self, folds: Mapping[str, Fold]) -> Folded:
        """Summed into groups: dimensions in the order of `folds`; columns that it does not name are summed up."""
        table = np.stack([self.counts, np.ones(self.counts.shape)])
        for j, name in enumerate(self.names, start=1):
            groups, size = folds.get(name, (np.zeros(self.counts.shape[j - 1], np.int64), 1))
            put = np.zeros((size, len(groups)))
            kept = groups >= 0
            put[groups[kept], np.flatnonzero(kept)] = 1.0
            table = np.moveaxis(np.tensordot(put, table, axes=(1, j)), 0, j)
        order = [1 + self.names.index(name) for name in folds]
        rest = [j for j in range(1, table.ndim) if j not in order]
        table = np.transpose(table, [0, *order, *rest]).reshape(2, *(folds[name][1] for name in folds))
        return Folded(table[0], table[1], self.variance)


@dataclass(frozen=True, eq=False)
class Folded:
    """Sums of noised cells, and of how many cells each is the sum."""

    counts: Floats
    cells: Floats
    variance: float


@dataclass(frozen=True, eq=False)
class Weighed:
    """Counts from several sources, their variance, and the fourth cumulant of their errors."""

    counts: Floats
    variance: Floats
    fourth: Floats

    def quantile(self, level: float) -> Floats:
        """How many standard errors an interval reaches."""
        z = NormalDist().inv_cdf((1 + level) / 2)
        square = np.square(self.variance)
        excess = np.divide(self.fourth, square, out=np.zeros_like(square), where=square > 0)
        return np.asarray(z + excess * (z**3 - 3 * z) / 24)


def weigh(centre: Floats, variance: Floats, sources: Sequence[Folded]) -> Weighed:
    """The sources put together, each weighed by the inverse of its variance. An infinite variance says nothing."""
    precision = np.divide(1.0, variance, out=np.full_like(variance, np.inf), where=variance > 0)
    known = np.isinf(precision)  # nothing is random there
    total, fourth = np.where(known, 1.0, precision), np.zeros_like(variance)
    value = np.where(np.isfinite(variance), centre, 0.0) * total
    parts = []
    for source in sources:
        own = source.cells * source.variance
        share = np.divide(1.0, own, out=np.zeros_like(own), where=own > 0)
        value, total = value + share * source.counts, total + share
        parts.append((share, 3 * source.cells * source.variance**2))
    whole = np.where(total > 0, total, 1.0)
    for share, cumulant in parts:
        fourth = fourth + (share / whole) ** 4 * cumulant
    return Weighed(
        np.where(known, centre, value / whole),
        np.where(known, 0.0, np.where(total > 0, 1 / whole, np.inf)),
        np.where(known, 0.0, fourth),
    )
