"""Plausible values from all associations of two columns: a log-linear model, its parameters drawn by the bootstrap.

    log x(v_1, ..., v_k) = sum of functions of one and of two columns

Its maximum of the likelihood has the shares of all values and of all pairs of values that the cells tell, without a
prior that pulls them together, so that what is asked of one or two columns of the tables is congenial with how they
were drawn. For every table the records are drawn anew with replacement, the model is fitted to them (EM, the M-step
one round of raking), and then every record's values are drawn given the fit. Such imputations are proper: parameters
differ from table to table as much as records leave them open (Little and Rubin, section 10.2.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from noren.estimates.counts.ascent import ascend
from noren.estimates.imputation.mixture import Axis

Floats = NDArray[np.float64]
CELLS = 100_000
"""More cells are not fitted."""
ENTRIES = 2_000_000
"""Nor more combinations of values that the different records leave possible."""
STEPS = 400
AGAIN = 100
"""Steps from the fit of all records to that of a resample."""
STILL = 0.02
"""Records: a fit ends when no cell moves by more."""
SOFT = 0.02
"""Part of independence in the table that a resample's fit starts from: it may need what seemed empty."""
LEAST = 4.0
"""Exactly known records, for every combination of the values of two columns, that cells must be worth."""
SMALLEST = 1e-300


def is_enough(axes: Sequence[Axis]) -> bool:
    """Whether the records tell enough of every two columns for tables of all pairs, and are few enough to be listed.

    Cells of information I and J (1 tells the value) are worth I J known records of the pair. With less the fit lies on
    the border of what is possible, where resamples do not tell how far it is from the truth.
    """
    if len(axes) < 2 or prod(axis.d for axis in axes) > CELLS:
        return False
    records = len(axes[0].cell)
    if records * prod(axis.value.shape[1] for axis in axes) > ENTRIES:
        return False
    told = [(axis.d, axis.information()) for axis in axes]
    return all(records * i * j >= LEAST * d * e for (d, i), (e, j) in combinations(told, 2))


class Pairs:
    """The records as combinations of values, each with its chance, and the table fitted to them."""

    def __init__(self, axes: Sequence[Axis], impossible: Sequence[Mapping[int, int]] = ()) -> None:
        self.shape = tuple(axis.d for axis in axes)
        different, self.tuple_of = np.unique(np.stack([a.cell for a in axes], axis=1), axis=0, return_inverse=True)
        self.tuple_of = self.tuple_of.reshape(-1)
        self.counts = np.bincount(self.tuple_of, minlength=len(different)).astype(np.float64)
        self.place = np.zeros((len(different), 1), np.int64)
        self.weight = np.ones((len(different), 1))
        for axis, cell in zip(axes, different.T, strict=True):
            value, weight = axis.value[cell][:, None, :], axis.weight[cell][:, None, :]
            self.place = (self.place[:, :, None] * axis.d + value).reshape(len(different), -1)
            self.weight = (self.weight[:, :, None] * weight).reshape(len(different), -1)
        self.allowed = np.ones(self.shape, bool)
        for rule in impossible:
            self.allowed[tuple(rule.get(number, slice(None)) for number in range(len(axes)))] = False
        spread = [axis.mean_shares() for axis in axes]
        start = self.allowed * product(spread)
        self.table = self._fitted(start * (self.counts.sum() / start.sum()), self.counts, STEPS)

    def draw(self, rng: np.random.Generator) -> list[NDArray[np.int64]]:
        """Values of all axes: one plausible table."""
        records = len(self.tuple_of)
        resample = np.bincount(self.tuple_of[rng.integers(0, records, records)], minlength=len(self.counts))
        table = self._fitted(self._softened(), resample.astype(np.float64), AGAIN)
        reach = (self.weight * table.ravel()[self.place] + SMALLEST * self.weight).cumsum(axis=1)
        picked = np.empty(records, np.int64)
        for start in range(0, records, 1 << 14):
            rows = self.tuple_of[start : start + (1 << 14)]
            passed = rng.random(len(rows))[:, None] * reach[rows, -1:] >= reach[rows]
            picked[start : start + (1 << 14)] = self.place[rows, passed.sum(axis=1).clip(0, reach.shape[1] - 1)]
        return [np.asarray(code, np.int64) for code in np.unravel_index(picked, self.shape)]

    def _softened(self) -> Floats:
        """The fit of all records, a little nearer to independence."""
        total, axes = self.table.sum(), range(self.table.ndim)
        margins = [self.table.sum(axis=tuple(k for k in axes if k != j)) / total for j in axes]
        mixed = (1 - SOFT) * self.table + SOFT * total * product(margins)
        return np.asarray(np.where(self.allowed, mixed, 0.0))

    def _fitted(self, x: Floats, counts: Floats, steps: int) -> Floats:
        def step(table: Floats) -> tuple[Floats, float]:
            part = self.weight * table.ravel()[self.place]
            sums = np.maximum(part.sum(axis=1), SMALLEST)
            part *= (counts / sums)[:, None]
            expected = np.bincount(self.place.ravel(), part.ravel(), minlength=table.size).astype(np.float64)
            return raked(table, expected.reshape(self.shape)), float((counts * np.log(sums)).sum())

        return ascend(step, x, STILL, steps)[0]


def product(shares: Sequence[Floats]) -> Floats:
    """The table in which columns of these shares are independent."""
    out = np.ones(())
    for part in shares:
        out = out[..., None] * part
    return out


def raked(x: Floats, expected: Floats) -> Floats:
    """One round of proportional fitting of x to the margins of two columns of another table."""
    for kept in combinations(range(x.ndim), 2):
        gone = tuple(j for j in range(x.ndim) if j not in kept)
        now, then = (table.sum(axis=gone, keepdims=True) for table in (x, expected))
        x = x * np.divide(then, now, out=np.zeros_like(then), where=now > 0)
    return x
