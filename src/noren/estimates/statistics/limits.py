"""Hard bounds: between which numbers a mean, a variance or a quantile lies, whatever the published cells hide.

They assume nothing about where in its cell a value lies. A record that is certainly in a group counts; one that may be
counts where that moves the bound outwards.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noren.estimates.statistics.records import Product, Records
from noren.estimates.statistics.variables import Variable


@dataclass(frozen=True, eq=False)
class Limits:
    """Of every different tuple that may count: its smallest and largest number, how many records, and whether it must
    count."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    counts: NDArray[np.float64]
    sure: NDArray[np.bool_]
    exact: float | None = None
    """The sum of all numbers, where whole groups with published tables are counted."""

    @classmethod
    def of(cls, records: Records, inside: Product, of: Variable) -> Limits:
        may, must = np.ones(len(records.counts), bool), np.ones(len(records.counts), bool)
        amounts, known = of.amounts, of.known > 0
        low, high = np.zeros(len(may)), np.zeros(len(may))
        for place in {*inside, of.axis}:
            admitted = inside.get(place, np.ones(records.scores[place].axis.d)) > 0
            own = place == of.axis
            admitted = admitted & known if own else admitted
            some, every, least, most = _reach(records, place, admitted, amounts if own else None)
            ids = records.ids[:, place]
            may &= some[ids]
            must &= every[ids]
            if own:
                low, high = least[ids], most[ids]
        return cls(low[may], high[may], records.counts[may], must[may], _whole(records, inside, of))

    def mean(self) -> tuple[float, float]:
        if self.exact is not None:
            value = self.exact / self.counts.sum()
            return value, value
        return -self._most(-self.low), self._most(self.high)

    def _most(self, values: NDArray[np.float64]) -> float:
        """The largest mean: records that must count, and of the others the largest, as long as that helps."""
        if not len(values):
            return float("nan")
        must = self.counts[self.sure] @ values[self.sure]
        there = self.counts[self.sure].sum()
        order = np.argsort(-values[~self.sure], kind="stable")
        values, counts = values[~self.sure][order], self.counts[~self.sure][order]
        sums, sizes = must + np.cumsum(values * counts), there + np.cumsum(counts)
        found = [must / there] if there else [values[0]]
        return float(max(*found, (sums / sizes).max(initial=-np.inf)))

    def variance(self) -> tuple[float, float]:
        """The least and (an upper bound of) the most, over centres: the variance is the least mean square about one."""
        if not len(self.low):
            return float("nan"), float("nan")
        if not self.sure.all():
            return 0.0, float((self.high.max() - self.low.min()) ** 2 / 4 * _more(self.counts.sum()))
        n = self.counts.sum()
        centres = np.unique(np.concatenate([self.low, self.high, np.linspace(self.low.min(), self.high.max(), 65)]))
        centres = centres[:: max(1, len(centres) // 400)]
        near = [self.counts @ (np.maximum(np.maximum(self.low - c, c - self.high), 0) ** 2) for c in centres]
        far = [self.counts @ (np.maximum(np.abs(self.low - c), np.abs(self.high - c)) ** 2) for c in centres]
        step = np.diff(centres).max(initial=0.0)
        least = max(0.0, np.sqrt(min(near) / n) - step) ** 2  # a centre between these could be this much better
        return float(least * _more(n)), float(min(far) / n * _more(n))

    def quantile(self, level: float) -> tuple[float, float]:
        if not len(self.low):
            return float("nan"), float("nan")
        if not self.sure.all():
            return float(self.low.min()), float(self.high.max())
        return _at(self.low, self.counts, level), _at(self.high, self.counts, level)


def _more(n: float) -> float:
    return n / max(n - 1, 1.0)


def _at(values: NDArray[np.float64], counts: NDArray[np.float64], level: float) -> float:
    order = np.argsort(values, kind="stable")
    share = np.cumsum(counts[order]) / counts.sum()
    return float(values[order][int(np.argmax(share >= level - 1e-9))])


def _reach(
    records: Records, place: int, admitted: NDArray[np.bool_], amounts: NDArray[np.float64] | None
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.float64], NDArray[np.float64]]:
    """Of every cell: may it be an admitted value, must it, and the smallest and largest number of those it may be."""
    axis = records.scores[place].axis
    cells = len(axis.distinct[0])
    if axis.d == 1:
        bounds, value = np.arange(cells + 1), np.zeros(cells, np.int64)
    else:
        bounds, value = axis.rows.possible(axis.d)
    starts = bounds[:-1]
    inside = admitted[value]
    some, every = np.logical_or.reduceat(inside, starts), np.logical_and.reduceat(inside, starts)
    if amounts is None:
        return some, every, np.zeros(cells), np.zeros(cells)
    least = np.minimum.reduceat(np.where(inside, amounts[value], np.inf), starts)
    most = np.maximum.reduceat(np.where(inside, amounts[value], -np.inf), starts)
    return some, every, np.where(some, least, 0.0), np.where(some, most, 0.0)


def _whole(records: Records, inside: Product, of: Variable) -> float | None:
    """The sum of all numbers where nothing but a column of groups is asked for, all of whose records are there."""
    statement = records.scores[of.axis].axis.statement
    if records.weights is not None:  # which of a group's records has which weight is not known
        return None
    if set(inside) - {of.axis} or statement.table is None or statement.fake_entries or not (of.known > 0).all():
        return None
    if of.axis in inside and not (inside[of.axis] > 0).all():
        return None
    totals = statement.table.totals
    return float(totals @ of.amounts) if totals.sum() == records.counts.sum() else None
