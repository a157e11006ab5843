"""Published columns as evidence: for every record the values that its cell speaks for, and how strongly."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from noren.ragged import chosen, distinct_of
from noren.statements import Cells, Likelihood, Statement

if TYPE_CHECKING:
    from noren.estimates.belief.kernels import Rows

MOST_KINDS = 512
"""Different cells of a column that are told apart where they are read as they stand; the rarest are taken together."""
BINS = 64
"""Groups of neighbouring numbers, where a column has more values than can be told apart."""
FEW = 64
"""General values up to which each is read as it stands; more overlap, and are read by the values under them."""


@dataclass(frozen=True)
class Evidence:
    """One column, or two together, as likelihoods over d values."""

    name: str
    d: int
    cells: Likelihood
    """Of every different cell; what exceeds the floor is listed."""
    of: NDArray[np.int64]
    """The cell of every record."""

    @cached_property
    def rows(self) -> Rows:
        """What the kernels take."""
        from noren.estimates.belief.kernels import Rows

        cells = self.cells
        return Rows(cells.bounds, cells.value, cells.weight - cells.floor, float(cells.floor), self.of)

    @cached_property
    def width(self) -> float:
        """Values that a record's cell lists, on average."""
        return float(self.cells.lengths[self.of].mean()) if len(self.of) else 0.0

    def listed(self, records: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """The values that stay possible for these records: where each one's begin, the values, and their likelihood."""
        bounds, taken = chosen(self._possible.bounds, self.of[records])
        return bounds, self._possible.value[taken], self._possible.weight[taken]

    def moved(self, records: NDArray[np.int64], prior: NDArray[np.float64]) -> NDArray[np.float64]:
        """(records, values): by how much a record's cell moves what is believed about anybody."""
        bounds, value, weight = self.listed(records)
        out = np.zeros((len(records), self.d))
        out[np.repeat(np.arange(len(records)), np.diff(bounds)), value] = weight
        out *= prior
        out /= np.maximum(out.sum(axis=1, keepdims=True), 1e-300)
        return np.asarray(out - out.mean(axis=0))

    @cached_property
    def _possible(self) -> Likelihood:
        return self.cells.listed(self.d)


def secret_of(statement: Statement, cells: Cells) -> Evidence | None:
    """The secret's own cells; None where they do not speak of listed values."""
    if statement.terms is not None or statement.rows_per_record > 1 or statement.d == 0:
        return None
    distinct, of = cells.distinct()
    found = statement.likelihood(distinct)
    return None if found is None else Evidence(statement.name, statement.d, _scaled(found), of)


def evidence_of(statement: Statement, cells: Cells) -> Evidence | None:
    """Another column; None for sets of terms and for rows that are not a person's."""
    if statement.terms is not None or statement.rows_per_record > 1:
        return None
    distinct, of = cells.distinct()
    many = len(distinct)
    if statement.is_exact or (statement.is_key and (many <= FEW or statement.d == 0)):
        return kinds(statement.name, _grouped(statement, distinct, of) if many > MOST_KINDS else of)
    found = None if statement.d == 0 else statement.likelihood(distinct)
    return None if found is None else Evidence(statement.name, statement.d, _scaled(found), of)


def kinds(name: str, of: NDArray[np.int64]) -> Evidence:
    """Cells that are read as they stand: each is a value of its own."""
    d = int(of.max(initial=0)) + 1
    return Evidence(name, d, Likelihood(np.arange(d + 1), np.arange(d), np.ones(d)), of)


def both(one: Evidence, two: Evidence) -> Evidence:
    """Two columns together, over pairs of values."""
    first, second = one.cells.listed(one.d), two.cells.listed(two.d)
    keys, _, of = distinct_of(one.of * np.int64(len(second)) + two.of)
    a, b = keys // len(second), keys % len(second)
    wide, narrow = first.lengths[a], second.lengths[b]
    size = wide * narrow
    bounds = np.concatenate([[0], np.cumsum(size)])
    at = np.arange(bounds[-1]) - np.repeat(bounds[:-1], size)
    behind = np.repeat(narrow, size)
    left, right = np.repeat(first.bounds[a], size) + at // behind, np.repeat(second.bounds[b], size) + at % behind
    value = first.value[left] * np.int64(two.d) + second.value[right]
    cells = Likelihood(bounds, value, first.weight[left] * second.weight[right])
    return Evidence(f"{one.name} and {two.name}", one.d * two.d, cells, of)


def _grouped(statement: Statement, distinct: Cells, of: NDArray[np.int64]) -> NDArray[np.int64]:
    """Fewer kinds of cells: neighbouring numbers together, else the rarest ones."""
    amounts = None if statement.column.is_open else statement.domain.amounts
    if amounts is not None and statement.is_exact:
        number = np.nan_to_num(np.asarray(amounts, np.float64)[statement.key(distinct)], nan=np.inf)[of]
        edges = np.unique(np.quantile(number, np.arange(1, BINS) / BINS, method="higher"))
        return np.searchsorted(edges, number, side="right")
    count = np.bincount(of)
    place = np.full(len(count), MOST_KINDS - 1, np.int64)
    place[np.argsort(-count, kind="stable")[: MOST_KINDS - 1]] = np.arange(MOST_KINDS - 1)
    return np.asarray(place[of])


def _scaled(found: Likelihood) -> Likelihood:
    """The same with 1 as the largest likelihood, so that products of many stay in range."""
    top = float(found.weight.max(initial=found.floor)) or 1.0
    return Likelihood(found.bounds, found.value, found.weight / top, found.floor / top)
