"""Noised margins under totals and models: a second, independent look at the same table.

The scores give totals T with noise of covariance V, a noised margin gives M for the same functions with covariance W.
Together T + V (V + W)^-1 (M - T), with covariance V - V (V + W)^-1 V. In a model's equations every cell of the table is
the mean of both, weighed by the cell's own variances; its errors follow from the records' sums with what is left of
their scores, the sampling of the records themselves, and the noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from noren.estimates.counts.margins import NoisedTable
from noren.estimates.statistics.corrected import ModelGrid
from noren.estimates.statistics.records import Product, Records, Totals

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PlacedMargin:
    """A noised table whose columns stand along axes of the records; others are summed up, under the conditions."""

    table: NoisedTable
    places: tuple[int | None, ...]
    """The axis of every column; None for one that is not asked for."""
    masks: Mapping[int, NDArray[np.bool_]]
    """By column of the table: the values that conditions on exact columns admit."""

    @cached_property
    def admitted(self) -> Floats:
        """1 for the cells that conditions leave."""
        out = np.ones(self.table.counts.shape)
        for j, mask in self.masks.items():
            out = out * np.expand_dims(mask.astype(np.float64), [k for k in range(out.ndim) if k != j])
        return out

    def holds(self, places: set[int]) -> bool:
        """Whether functions of these axes are functions of the table's columns."""
        return places <= {place for place in self.places if place is not None}

    def over(self, function: Product) -> Floats:
        """A function of the records as one of the table's cells."""
        out = self.admitted
        for j, place in enumerate(self.places):
            if place is not None and place in function:
                out = out * np.expand_dims(function[place], [k for k in range(out.ndim) if k != j])
        return out


def with_margins(
    records: Records, margins: Sequence[PlacedMargin], functions: Sequence[Product], population: bool
) -> Totals:
    """Totals from the scores and from every margin that holds all the functions' columns."""
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
        """From the margin that holds all columns of the model and has least noise; None if there is none."""
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
        """What sampling and noise add to the records' own sums: sum over cells of left x (left x)'."""
        part = own * (1 - (1 - self.share) ** 2) + self.share**2 * self.variance
        each = (left[..., :, None] * x[..., None, :]).reshape(-1, left.shape[-1] * x.shape[-1])
        return np.asarray((each * part.reshape(-1, 1)).T @ each)


def _on_grid(grid: ModelGrid, base: Product, margin: PlacedMargin) -> tuple[Floats, Floats]:
    """The margin's counts in the cells of a model, and how many of its cells each is the sum of."""
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
