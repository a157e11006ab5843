"""Noised margins in totals and models: a second, independent source for the same table.

The scores give totals T with noise of covariance V, a noised margin gives M for the same functions with covariance W.
Together T + V (V + W)^-1 (M - T), with covariance V - V (V + W)^-1 V. In a model's equations every cell of the table is
the mean of both, weighed by the cell's own variances; its errors follow from the records' sums with what is left of
their scores, the sampling of the records themselves, and the noise.

Noised margins in estimates: two independent, unbiased sources for one count are weighed by their variances.

The decoys give a count with a known variance, a noised margin another: c = (v_m x + v_x m) / (v_x + v_m), with the
variance v_x v_m / (v_x + v_m). Discrete Laplace noise has longer tails than the normal, so the quantile is that of
Cornish and Fisher with the fourth cumulant that is left: z + k (z^3 - 3 z) / 24, k = 3 / cells for a sum of cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from noren.estimates.statistics.corrected import ModelGrid
from noren.estimates.statistics.records import Product, Records, Totals

Floats = NDArray[np.float64]
Fold = tuple[NDArray[np.int64], int]
"""For every value of a column the group it counts in, -1 for none; and how many groups there are."""


@dataclass(frozen=True, eq=False)
class NoisedTable:
    """Counts over the values of some columns, with independent noise of a known variance in each cell."""

    names: tuple[str, ...]
    counts: Floats
    variance: float
    """Of the noise of one cell."""
    epsilon: float

    def folded(self, folds: Mapping[str, Fold]) -> Folded:
        """Sum the table into groups: dimensions in the order of `folds`; other columns are summed up."""
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
    """Sums of noised cells, and the number of cells in each."""

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
        """Return the number of standard errors of an interval."""
        z = NormalDist().inv_cdf((1 + level) / 2)
        square = np.square(self.variance)
        excess = np.divide(self.fourth, square, out=np.zeros_like(square), where=square > 0)
        return np.asarray(z + excess * (z**3 - 3 * z) / 24)


def weigh(centre: Floats, variance: Floats, sources: Sequence[Folded]) -> Weighed:
    """Combine the sources, each weighted by the inverse of its variance. An infinite variance has no weight."""
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


@dataclass(frozen=True, eq=False)
class PlacedMargin:
    """A noised table whose columns are arranged along axes of the records; others are summed up, under the
    conditions."""

    table: NoisedTable
    places: tuple[int | None, ...]
    """The axis of every column; None for one that is not asked for."""
    masks: Mapping[int, NDArray[np.bool_]]
    """By column of the table: the values that conditions on exact columns admit."""

    @cached_property
    def admitted(self) -> Floats:
        """Return 1 for the cells that meet the conditions."""
        out = np.ones(self.table.counts.shape)
        for j, mask in self.masks.items():
            out = out * np.expand_dims(mask.astype(np.float64), [k for k in range(out.ndim) if k != j])
        return out

    def holds(self, places: set[int]) -> bool:
        """Return whether functions of these axes are functions of the table's columns."""
        return places <= {place for place in self.places if place is not None}

    def over(self, function: Product) -> Floats:
        """Return a function of the records as one of the table's cells."""
        out = self.admitted
        for j, place in enumerate(self.places):
            if place is not None and place in function:
                out = out * np.expand_dims(function[place], [k for k in range(out.ndim) if k != j])
        return out


def with_margins(
    records: Records, margins: Sequence[PlacedMargin], functions: Sequence[Product], population: bool
) -> Totals:
    """Combine totals from the scores with every margin that contains all columns of the functions."""
    asked = {place for function in functions for place in function}
    used = [margin for margin in margins if margin.holds(asked)]
    found = records.totals(functions, population=population)
    if not used or all(records.scores[place].axis.is_exact for place in asked):
        return found
    noise = records.totals(functions, population=False).cov if population else found.cov
    value, cov = found.value, noise
    for margin in used:
        cells = np.stack([margin.over(function).ravel() for function in functions])
        other, own = cells @ margin.table.counts.ravel(), margin.table.variance * cells @ cells.T
        gain = cov @ np.linalg.pinv(cov + own, rcond=1e-12, hermitian=True)
        value, cov = value + gain @ (other - value), cov - gain @ cov
    cov = (cov + cov.T) / 2
    return Totals(value, found.cov - noise + cov if population else cov, found.records)


@dataclass(frozen=True, eq=False)
class Blend:
    """A model's table from scores and a margin: the margin's share of every cell, its counts and its noise."""

    share: Floats
    counts: Floats
    variance: Floats

    @classmethod
    def of(
        cls, grid: ModelGrid, base: Product, variables: Sequence[str], margins: Sequence[PlacedMargin]
    ) -> Blend | None:
        """Make it from the margin that contains all columns of the model and has least noise; None if there is none."""
        asked = {*grid.hidden, *grid.exact, *base}
        used = [margin for margin in margins if margin.holds(asked)]
        if not used or not grid.hidden:
            return None
        best = min(used, key=lambda margin: margin.table.variance)
        counts, cells = _on_grid(grid, base, best)
        noise = best.table.variance * cells
        own = grid.records.inflation * np.maximum(grid.squares_table - grid.table, 0.0)
        whole = own + noise
        share = np.divide(own, whole, out=np.zeros_like(own), where=(whole > 0) & (cells > 0))
        return cls(share, counts, noise)

    def table(self, own: Floats) -> Floats:
        return np.asarray((1 - self.share) * own + self.share * self.counts)

    def meat(self, own: Floats, left: Floats, x: Floats) -> Floats:
        """Return what sampling and noise add to the records' own sums: sum over cells of left x (left x)'."""
        part = own * (1 - (1 - self.share) ** 2) + self.share**2 * self.variance
        each = (left[..., :, None] * x[..., None, :]).reshape(-1, left.shape[-1] * x.shape[-1])
        return np.asarray((each * part.reshape(-1, 1)).T @ each)


def _on_grid(grid: ModelGrid, base: Product, margin: PlacedMargin) -> tuple[Floats, Floats]:
    """Return the margin's counts in the cells of a model, and the number of its cells in each."""
    table = margin.table
    inside = np.flatnonzero((margin.over(base) > 0).ravel())
    codes = np.unravel_index(inside, table.counts.shape)
    of_axis = {place: codes[j] for j, place in enumerate(margin.places) if place is not None}
    slot, column = grid.located(of_axis)
    kept = (slot >= 0) & (column >= 0)
    flat = slot[kept] * grid.shape[1] + column[kept]
    size = grid.shape[0] * grid.shape[1]
    counts = np.bincount(flat, table.counts.ravel()[inside[kept]], size)
    cells = np.bincount(flat, minlength=size).astype(np.float64)
    return counts.astype(np.float64).reshape(grid.shape), cells.reshape(grid.shape)
