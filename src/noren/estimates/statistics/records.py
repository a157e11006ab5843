"""Records as products of scores: totals of functions of hidden values, with their covariances.

A function that is a product of one factor for each column has the product of the columns' scores as its score, because
cells are drawn independently given the values. Equal tuples of cells are one row with a count, so that work grows with
different tuples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from noren.estimates.counts.axes import Axis
from noren.estimates.counts.rows import distinct_rows, row_numbers
from noren.estimates.counts.weights import Weights
from noren.estimates.statistics.scores import AxisScores

Product = Mapping[int, NDArray[np.float64]]
"""A function of a record: a factor over the base values for some columns, 1 for the others."""


@dataclass(frozen=True)
class Totals:
    """Sums of some functions over the records, and the covariance of their errors."""

    value: NDArray[np.float64]
    cov: NDArray[np.float64]
    records: float

    def variance(self, gradient: NDArray[np.float64]) -> float:
        """Of a smooth function of the totals with this gradient."""
        return max(float(gradient @ self.cov @ gradient), 0.0)


@dataclass(frozen=True, eq=False)
class Records:
    """The different tuples of cells of some columns, and how often each occurs.

    With survey weights, whose mean is 1, `counts` are their sums and `squares` the sums of their squares: every record
    brings its own error, so that variances go by the latter.
    """

    scores: Sequence[AxisScores]
    ids: NDArray[np.int64]
    counts: NDArray[np.float64]
    squares: NDArray[np.float64]
    n: float
    """How many records there are."""
    weights: Weights | None = None
    inflation: float = 1.0
    """How many records a person has at most: by so much errors of sums may have more variance than independent ones."""

    @classmethod
    def of(cls, axes: Sequence[Axis], weights: Weights | None = None, inflation: float = 1.0) -> Records:
        scores = [AxisScores(axis) for axis in axes]
        n = len(axes[0].cells)
        columns = [each.ids for each in scores]
        rows, counts = distinct_rows(columns, n)
        if weights is None:
            return cls(scores, rows, counts, counts, float(n), inflation=inflation)
        place = row_numbers(columns, n)
        sums, squares = (np.bincount(place, each, len(rows)).astype(np.float64) for each in (weights.of, weights.of**2))
        return cls(scores, rows, sums, squares, float(n), weights, inflation)

    @cached_property
    def is_coarse(self) -> bool:
        return any(each.is_coarse for each in self.scores)

    @cached_property
    def is_hidden(self) -> bool:
        return any(not each.axis.is_exact for each in self.scores)

    def score(self, function: Product) -> NDArray[np.float64]:
        """The score of every different tuple."""
        out = np.ones(len(self.counts))
        for place, factor in function.items():
            out = out * self.scores[place].of(factor[:, None])[self.ids[:, place], 0]
        return out

    def totals(self, functions: Sequence[Product], *, population: bool) -> Totals:
        """Sums over the records. Of the original table only what is drawn is random; of a population people are too.

        The error of a record is s(R) - f(v), whose variance E[s^2 | v] - f(v)^2 has s^2 less the score of f^2 as its
        own unbiased estimate. All covariances allow for several records of a person.
        """
        found = np.stack([self.score(function) for function in functions], axis=1)
        value, n = self.counts @ found, self.n
        larger = self.inflation * n / max(n - 1, 1.0)
        if population and self.weights is None:
            centred = found - value / max(n, 1.0)
            return Totals(value, (centred * self.counts[:, None]).T @ centred * larger, n)
        cov = (found * self.squares[:, None]).T @ found
        if population:  # a record's part of the total is its weight times its score
            return Totals(value, (cov - np.outer(value, value) / max(n, 1.0)) * larger, n)
        for a, first in enumerate(functions):
            for b, second in enumerate(functions[: a + 1]):
                both = self.score(_product(first, second))
                cov[a, b] = cov[b, a] = cov[a, b] - float(self.squares @ both)
        return Totals(value, cov * self.inflation, n)


def _product(first: Product, second: Product) -> Product:
    shared = {place: first[place] * second[place] for place in first if place in second}
    return {**first, **second, **shared}
