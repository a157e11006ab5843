"""Records as products of scores: totals of functions of hidden values, with their covariances.

A function that is a product of one factor for each column has the product of the columns' scores as its score, because
cells are drawn independently given the values. Equal tuples of cells are one row with a count, so that work grows with
different tuples.

Unbiased scores: numbers s(R) of published cells with E[s(R) | v] = f(v) for every function f of the true value.

A cell that a published design drew has a known likelihood P(R | v), and many scores are unbiased. Noren takes the one
of least variance for a prior pi: with q(R, v) = P(R | v) / P_pi(R) and M = sum over all sets of P(R | u) q(R, v) it is
q(R, .) M^-1 f. It is unbiased whatever pi is; pi is the column's own estimated margin, mixed with an even share so that
no set weighs too much. Where the sets are too many to be summed over, the inclusion matrix is inverted instead, which
is the same score for an even prior.

The score of an exact cell is f of its value. A coarse cell (a generalised value, a group) has no design: its score is
the mean of f over what it leaves possible, spread evenly or as the group's table counts, and that is an assumption.

What a column's values are to a computation: numbers, groups, or the indicator of one value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError
from noren.estimates.counts.axes import Axis, Weights
from noren.estimates.counts.rows import distinct_rows, row_numbers
from noren.schema.domain import MISSING, OTHER, Domain, end_labels
from noren.schema.extents import kind_of
from noren.schema.hierarchy import value_text
from noren.schema.kinds import NUMERIC, as_number
from noren.statements import Likelihood


@dataclass(frozen=True, eq=False)
class Variable:
    """A requested column: its axis, and the label of every base value of that axis.

    `numbers` are what the labels stand for, NaN where a label is no number (missing, other); None for a column of
    names. `edges` are given where labels are bins, in order.
    """

    name: str
    axis: int
    labels: tuple[str, ...]
    groups: NDArray[np.int64]
    numbers: NDArray[np.float64] | None = None
    edges: NDArray[np.float64] | None = None
    note: str = ""
    limits: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
    """The range of every label, where some labels are open intervals."""
    is_share: bool = False
    """Asked for as "column=value", which no table has along a side."""

    @property
    def known(self) -> NDArray[np.float64]:
        """Return 1 for base values that have a number (or, for categories, that are not missing)."""
        if self.numbers is not None:
            return np.isfinite(self.numbers)[self.groups].astype(np.float64)
        there = np.array([label != MISSING for label in self.labels])
        return there[self.groups].astype(np.float64)

    @property
    def amounts(self) -> NDArray[np.float64]:
        """Return the number of every base value, 0 if there is none; raise if the column holds categories."""
        if self.numbers is None:
            raise QueryError(
                f"{self.name!r} holds no numbers.",
                hint=f"Ask for a share: {self.name + '=' + self.labels[0]!r}; or give numbers: "
                f"values={{{self.name!r}: {{{self.labels[0]!r}: 0, ...}}}}.",
            )
        return np.nan_to_num(self.numbers, nan=0.0)[self.groups]

    @property
    def ends(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the range of every base value: the ends of a bin, otherwise the number itself twice."""
        if self.limits is not None:
            return self.limits[0][self.groups], self.limits[1][self.groups]
        if self.edges is None:
            return self.amounts, self.amounts
        low, high = np.zeros(len(self.labels)), np.zeros(len(self.labels))
        low[: len(self.edges) - 1], high[: len(self.edges) - 1] = self.edges[:-1], self.edges[1:]
        return low[self.groups], high[self.groups]

    def indicator(self, label: int) -> NDArray[np.float64]:
        return np.asarray((self.groups == label).astype(np.float64))


def numbers_of(
    name: str, domain: Domain, declared: Mapping[object, float] | None = None
) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None, str]:
    """Return the numbers of a domain's values, the edges of its bins, and a remark on how they were chosen."""
    if declared is not None:
        return _declared(name, domain, declared), None, f"values of {name!r} count as the given numbers"
    if domain.measure is not None and kind_of(domain.measure) not in NUMERIC:
        return None, None, ""  # the edges are days, seconds or codes: a mean of them is no number of the column
    if domain.edges is not None:
        edges = np.asarray(domain.edges, np.float64)
        out = np.full(len(domain), np.nan)
        with np.errstate(invalid="ignore"):
            out[: len(edges) - 1] = (edges[:-1] + edges[1:]) / 2
        if not np.isfinite(edges).all():
            raise QueryError(
                f"{name!r} has an open interval, which has no midpoint.",
                hint=f"Give a number for each interval: values={{{name!r}: {{{domain.values[0]!r}: 9.5, ...}}}}.",
            )
        return out, edges, f"an interval of {name!r} counts as its midpoint"
    if domain.has_ends:
        ends = {label: end for end, label in end_labels(domain.top, domain.bottom)}
        return _read(domain, ends), None, f"an open interval of {name!r} counts as its finite end"
    if domain.kind == "boolean":
        return np.array([1.0 if v == "true" else 0.0 if v == "false" else np.nan for v in domain.values]), None, ""
    if domain.kind in NUMERIC or domain.text_kind in NUMERIC:
        return _read(domain, {}), None, ""
    return None, None, ""


def limits_of(domain: Domain) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Return the range of every value where the largest or the smallest ones are open intervals; None elsewhere."""
    if not domain.has_ends:
        return None
    numbers = np.nan_to_num(_read(domain, {label: end for end, label in end_labels(domain.top, domain.bottom)}))
    below = {label for _, label in end_labels(None, domain.bottom)}
    above = {label for _, label in end_labels(domain.top, None)}
    low = np.where([value in below for value in domain.values], -np.inf, numbers)
    return low, np.where([value in above for value in domain.values], np.inf, numbers)


def _read(domain: Domain, ends: Mapping[str, float]) -> NDArray[np.float64]:
    special = (MISSING, OTHER)
    return np.array(
        [np.nan if v in special else ends[v] if v in ends else as_number(v, "number") for v in domain.values]
    )


def _declared(name: str, domain: Domain, declared: Mapping[object, float]) -> NDArray[np.float64]:
    given = {value_text(value): float(number) for value, number in declared.items()}
    if unknown := [value for value in given if value not in domain.index]:
        raise QueryError(f"{name!r} has no value {unknown[0]!r}.", hint=f"It has {', '.join(domain.values[:12])}.")
    if lacking := [value for value in domain.plain if value not in given]:
        raise QueryError(f"{lacking[0]!r} of {name!r} has no number.", hint="Give a number for every value.")
    return np.array([given.get(value, np.nan) for value in domain.values])


MOST_SETS = 50_000
"""Sets of a design over which its scores are made for the column's own margin."""
EVEN = 0.2
"""Weight of an even prior beside the estimated margin. A round number: any value keeps scores unbiased."""
STEPS = 200
LOST = 1e-6
"""A function that misses its expectation by more, relative to its size, is not determined by the sets."""


@dataclass(frozen=True, eq=False)
class AxisScores:
    """The scores of the distinct cells of one column, and every record's cell."""

    axis: Axis

    @property
    def ids(self) -> NDArray[np.int32]:
        return self.axis.distinct[1]

    @property
    def is_coarse(self) -> bool:
        return self.axis.is_coarse

    @cached_property
    def cells(self) -> int:
        """Return the number of distinct cells."""
        return len(self.axis.distinct[0])

    @cached_property
    def _rows(self) -> Likelihood:
        return self.axis.rows

    def of(self, functions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a (cells, k) array: the scores of k functions, given as columns over the base values."""
        axis = self.axis
        if axis.d == 1:
            return np.repeat(functions, self.cells, axis=0)
        if axis.is_exact:
            return functions[self._rows.possible(axis.d)[1]]
        if axis.is_coarse:
            return _summed(self._spread, functions)
        even = np.ptp(functions, axis=0) == 0
        out = np.repeat(functions[:1], self.cells, axis=0).astype(np.float64)
        if not even.all():
            out[:, ~even] = self._drawn(functions[:, ~even])
        return out

    # ------------------------------------------------------------------ coarse cells

    @cached_property
    def _spread(self) -> Likelihood:
        """Return P(value | cell) of coarse cells: by the group's table, or evenly over the values of a node."""
        rows, statement = self._rows, self.axis.statement
        if statement.table is not None:
            weight = rows.weight * statement.table.totals[rows.value]
        else:
            widths = statement.domain.widths
            weight = rows.weight if widths is None else rows.weight * widths[rows.value]
        whole = np.bincount(rows.owner, weight, minlength=len(rows))
        return Likelihood(rows.bounds, rows.value, weight / whole[rows.owner])

    # ------------------------------------------------------------------ drawn cells

    def _drawn(self, functions: NDArray[np.float64]) -> NDArray[np.float64]:
        axis, made = self.axis, self._efficient
        if axis.is_blind:
            raise self._lost()
        if made is None:
            return self._by_inclusion(functions)
        matrix, back, prior = made
        solved = back @ functions
        self._demand(matrix @ solved, functions)
        rows = self._rows
        extra = Likelihood(rows.bounds, rows.value, rows.weight - rows.floor)
        whole = _summed(extra, prior[:, None])[:, 0] + rows.floor
        if np.any(whole <= 0):
            raise QueryError(
                f"Some sets of {axis.name!r} cannot come from its design ({axis.design.title}).",
                hint="Ask the holder for the release again.",
            )
        return np.asarray((_summed(extra, solved) + rows.floor * solved.sum(axis=0)) / whole[:, None])

    def _by_inclusion(self, functions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the scores for an even prior from P(u in R | v): closed for uniform decoys, otherwise by the design's
        inverse."""
        design = self.axis.design
        rows = self._rows
        inside = Likelihood(rows.bounds, rows.value, np.ones(len(rows.value)))
        inverse = getattr(design.inversion, "inverse", None)
        if inverse is None:
            chance, gap = design.p_other, design.p_gap  # type: ignore[attr-defined]
            return np.asarray((_summed(inside, functions) - chance * functions.sum(axis=0)) / gap)
        solved = inverse.T @ functions
        self._demand(design.inclusion_matrix() @ solved, functions)
        return _summed(inside, solved)

    @cached_property
    def _efficient(self) -> tuple[NDArray, NDArray, NDArray] | None:
        """Return M, its inverse and the prior; None if there are too many sets, or only one score is unbiased."""
        design = self.axis.design
        if design.eta < 2 or comb(design.d, design.eta) > MOST_SETS:
            return None
        from scipy.sparse import csr_array

        sets = np.array(list(combinations(range(design.d), design.eta)), np.int64)
        extra, floor = design.member_weights(sets) - design.floor, design.floor
        drawn = extra.max(axis=1) > 0
        if floor > 0 and not drawn.all():
            return None
        sets, extra = sets[drawn], extra[drawn]
        total = np.bincount(sets.ravel(), extra.ravel(), minlength=design.d) + floor * len(sets)
        if np.abs(total - 1).max() > 1e-6:
            return None
        prior = (1 - EVEN) * self.margin + EVEN / design.d
        chance = (extra * prior[sets]).sum(axis=1) + floor
        bounds = np.arange(len(sets) + 1) * design.eta
        scaled = csr_array(((extra / np.sqrt(chance)[:, None]).ravel(), sets.ravel(), bounds), (len(sets), design.d))
        once = np.bincount(sets.ravel(), (extra / chance[:, None]).ravel(), minlength=design.d)
        matrix = (scaled.T @ scaled).toarray() + floor * (once[:, None] + once[None, :])
        matrix += floor**2 * float((1 / chance).sum())
        return matrix, np.linalg.pinv(matrix, rcond=1e-9, hermitian=True), prior

    @cached_property
    def margin(self) -> NDArray[np.float64]:
        """Return the column's own shares, by EM over its distinct cells."""
        rows, counts = self._rows, np.bincount(self.ids, minlength=len(self._rows)).astype(np.float64)
        shares = np.full(self.axis.d, 1 / self.axis.d)
        extra, owner = rows.weight - rows.floor, rows.owner
        for _ in range(STEPS):
            whole = np.bincount(owner, extra * shares[rows.value], minlength=len(rows)) + rows.floor
            ratio = counts / np.maximum(whole, 1e-300)
            gain = np.bincount(rows.value, extra * ratio[owner], minlength=self.axis.d) + rows.floor * ratio.sum()
            found = shares * gain / max(counts.sum(), 1.0)
            found /= max(found.sum(), 1e-300)
            moved, shares = float(np.abs(found - shares).max()), found
            if moved < 1e-6:
                break
        return shares

    def _demand(self, found: NDArray[np.float64], wanted: NDArray[np.float64]) -> None:
        scale = np.abs(wanted).max(axis=0) + 1e-300
        if np.any(np.abs(found - wanted).max(axis=0) > LOST * scale * max(1.0, self.axis.d**0.5)):
            raise self._lost()

    def _lost(self) -> QueryError:
        axis = self.axis
        return QueryError(
            f"The sets of {axis.name!r} (l = {axis.design.eta} of {axis.d} values) do not determine the answer.",
            hint=f"`release.estimate({axis.name!r})` gives bounds.",
        )


def _summed(rows: Likelihood, functions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a (cells, k) array: the sum of weight times function over the entries of every row."""
    from scipy.sparse import csr_array

    matrix = csr_array((rows.weight, rows.value, rows.bounds), (len(rows.bounds) - 1, len(functions)))
    return np.asarray(matrix @ functions)


Product = Mapping[int, NDArray[np.float64]]
"""A function of a record: a factor over the base values for some columns, 1 for the others."""


@dataclass(frozen=True)
class Totals:
    """Sums of some functions over the records, and the covariance of their errors."""

    value: NDArray[np.float64]
    cov: NDArray[np.float64]
    records: float

    def variance(self, gradient: NDArray[np.float64]) -> float:
        """Return the variance of a smooth function of the totals with this gradient."""
        return max(float(gradient @ self.cov @ gradient), 0.0)


@dataclass(frozen=True, eq=False)
class Records:
    """The distinct tuples of cells of some columns, with their counts.

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
        """Return the score of every distinct tuple."""
        out = np.ones(len(self.counts))
        for place, factor in function.items():
            out = out * self.scores[place].of(factor[:, None])[self.ids[:, place], 0]
        return out

    def totals(self, functions: Sequence[Product], *, population: bool) -> Totals:
        """Return sums over the records. For the original table only the draws are random; for a population people are
        too.

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
