"""A Dirichlet-process mixture of product multinomials, drawn by blocked Gibbs steps from the possible values.

Every record belongs to a class; within a class columns are independent, each with shares of its own. Classes are as
many as the records ask for. A hidden value enters through P(cell | value), so that values are drawn from what was
published and nothing else.

Plausible values from all associations of two columns: a log-linear model, its parameters drawn by the bootstrap.

    log x(v_1, ..., v_k) = sum of functions of one and of two columns

Its maximum of the likelihood has the shares of all values and of all pairs of values that the cells tell, without a
prior that pulls them together, so that what is asked of one or two columns of the tables is congenial with how they
were drawn. For every table the records are drawn anew with replacement, the model is fitted to them (EM, the M-step
one round of raking), and then every record's values are drawn given the fit. Such imputations are proper: parameters
differ from table to table as much as records leave them open (Little and Rubin, section 10.2.3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

from noren.estimates.counts.tuples import Ascent
from noren.statements import Cells, Likelihood, Statement

ROWS_AT_ONCE = 1 << 15
CONCENTRATION = (0.25, 0.25)
"""Shape and rate of the prior of the process's concentration: few classes unless the records ask for more."""
PRIOR_RECORDS = 1.0
"""Records that the prior of a class's shares weighs as, spread as the whole column is."""
TINY = 1e-300
ROUNDS = 50
"""Times that records are drawn again because they break a rule; one fixed rule may break another."""


@dataclass(frozen=True)
class Axis:
    """One column: the cell of each record, and the likelihood of the distinct cells."""

    name: str
    d: int
    cell: NDArray[np.int64]
    value: NDArray[np.int64]
    """(cells, widest): the values that a cell leaves possible, padded with its first."""
    weight: NDArray[np.float64]
    """P(cell | value) for each, zero where it is padding."""

    @classmethod
    def of(cls, statement: Statement, cells: Cells) -> Axis:
        different, cell = cells.distinct()
        found = statement.likelihood(different)
        assert found is not None
        value, weight = _padded(found.listed(statement.d))
        return cls(statement.name, statement.d, cell, value, weight)

    def without(self, rows: NDArray[np.int64]) -> Axis:
        """Return the same axis with some records' cells removed, so that all values are possible."""
        widest = max(self.d, self.value.shape[1])
        value = np.pad(self.value, ((0, 1), (0, widest - self.value.shape[1])), mode="edge")
        weight = np.pad(self.weight, ((0, 1), (0, widest - self.weight.shape[1])))
        value[-1, : self.d], weight[-1, : self.d] = np.arange(self.d), 1.0
        cell = self.cell.copy()
        cell[rows] = len(self.value)
        return Axis(self.name, self.d, cell, value, weight)

    @property
    def is_known(self) -> bool:
        """Return whether every cell gives its exact value."""
        return bool(self.value.shape[1] == 1)

    def information(self) -> float:
        """Return the share of information about a value that its cell preserves under equal frequencies, from 0 to
        1."""
        if self.d < 2 or not len(self.cell):
            return 1.0
        spread = self.weight / np.maximum(self.weight.sum(axis=1, keepdims=True), TINY)
        square = float(np.square(spread).sum(axis=1)[self.cell].mean())
        return max((self.d * square - 1) / (self.d - 1), 0.0)

    def mean_shares(self) -> NDArray[np.float64]:
        """Return the shares of the values, with each cell spread over its possible values."""
        spread = self.weight / np.maximum(self.weight.sum(axis=1, keepdims=True), TINY)
        count = np.bincount(self.cell, minlength=len(self.value)).astype(np.float64)
        shares = np.bincount(self.value.ravel(), (spread * count[:, None]).ravel(), minlength=self.d)
        return np.asarray((shares + 0.5) / (shares.sum() + 0.5 * self.d))


def _padded(found: Likelihood) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    widest = int(found.lengths.max(initial=1))
    place = np.arange(len(found.value)) - np.repeat(found.bounds[:-1], found.lengths)
    value = np.repeat(found.value[found.bounds[:-1]][:, None], widest, axis=1)
    weight = np.zeros((len(found), widest))
    value[found.owner, place] = found.value
    weight[found.owner, place] = found.weight
    largest = weight.max(axis=1, keepdims=True)
    return value, weight / np.maximum(largest, TINY)


@dataclass
class Mixture:
    """The state of the chain: classes of records, shares of classes, shares of values in classes, drawn values."""

    axes: Sequence[Axis]
    classes: int
    rng: np.random.Generator
    impossible: Sequence[Mapping[int, int]] = ()
    """Combinations of (axis, value) that no record can have."""
    trace: list[float] = field(default_factory=list)
    """Mean log-likelihood of the published cells, sweep by sweep."""

    def __post_init__(self) -> None:
        self.records = len(self.axes[0].cell)
        self.base = [axis.mean_shares() for axis in self.axes]
        self.alpha = 1.0
        self.member = self.rng.integers(0, self.classes, self.records)
        self.values = [self._first(axis) for axis in self.axes]
        self._draw_parameters()

    def _first(self, axis: Axis) -> NDArray[np.int64]:
        if axis.is_known:
            return np.asarray(axis.value[axis.cell, 0])
        return self._pick(axis.value[axis.cell], axis.weight[axis.cell])

    def sweep(self) -> None:
        """Take one step of the chain: classes, values, parameters."""
        self._draw_classes()
        self._draw_values()
        self._draw_parameters()

    @property
    def occupied(self) -> int:
        return len(np.unique(self.member))

    # ------------------------------------------------------------------ steps

    def _draw_classes(self) -> None:
        """Draw classes with the hidden values summed out, so that records move freely."""
        pairs = zip(self.axes, self.shares, strict=True)
        logs = [np.log(np.maximum(self._chance(axis, shares), TINY)) for axis, shares in pairs]
        prior, total = np.log(np.maximum(self.weights, TINY)), 0.0
        for start in range(0, self.records, ROWS_AT_ONCE):
            rows = slice(start, min(start + ROWS_AT_ONCE, self.records))
            score = np.repeat(prior[None, :], rows.stop - rows.start, axis=0)
            for axis, log in zip(self.axes, logs, strict=True):
                score += log[axis.cell[rows]]
            highest = score.max(axis=1, keepdims=True)
            chance = np.exp(score - highest)
            total += float((np.log(chance.sum(axis=1)) + highest[:, 0]).sum())
            self.member[rows] = self._place(chance)
        self.trace.append(total / max(1, self.records))

    def _chance(self, axis: Axis, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return P(cell | class) as a (cells, classes) array."""
        out = np.zeros((len(axis.value), self.classes))
        for place in range(axis.value.shape[1]):
            out += axis.weight[:, place, None] * shares[:, axis.value[:, place]].T
        return out

    def _draw_values(self) -> None:
        for number, axis in enumerate(self.axes):
            if not axis.is_known:
                self._draw_value(number, axis, np.arange(self.records))
        for _ in range(ROUNDS if self.impossible else 0):
            found = [self._mend(rule) for rule in self.impossible]
            if not any(found):
                return

    def _draw_value(self, number: int, axis: Axis, rows: NDArray[np.int64], other_than: int = -1) -> NDArray[np.bool_]:
        """Draw the values of some records; return which have another value than the excluded one."""
        drawn = np.zeros(len(rows), bool)
        for start in range(0, len(rows), ROWS_AT_ONCE):
            some = rows[start : start + ROWS_AT_ONCE]
            value, weight = axis.value[axis.cell[some]], axis.weight[axis.cell[some]]
            chance = weight * np.maximum(self.shares[number][self.member[some][:, None], value], TINY)
            chance = np.where(value == other_than, 0.0, chance)
            free = chance.sum(axis=1) > 0
            drawn[start : start + ROWS_AT_ONCE] = free
            self.values[number][some[free]] = self._pick(value[free], chance[free])
        return drawn

    def _mend(self, rule: Mapping[int, int]) -> bool:
        """Redraw one value of each record that breaks a rule; return whether there were any."""
        broken = np.logical_and.reduce([self.values[number] == value for number, value in rule.items()])
        rows = np.flatnonzero(broken)
        found = bool(len(rows))
        hidden = [number for number in rule if not self.axes[number].is_known]
        for number in self.rng.permutation(hidden) if found else ():
            rows = rows[~self._draw_value(int(number), self.axes[number], rows, rule[number])]
        return found

    def _draw_parameters(self) -> None:
        self.shares = []
        for axis, base, values in zip(self.axes, self.base, self.values, strict=True):
            counts = np.bincount(self.member * axis.d + values, minlength=self.classes * axis.d)
            drawn = self.rng.standard_gamma(counts.reshape(self.classes, axis.d) + PRIOR_RECORDS * base)
            self.shares.append(np.maximum(drawn, TINY) / np.maximum(drawn, TINY).sum(axis=1, keepdims=True))
        size = np.bincount(self.member, minlength=self.classes)
        after = size[::-1].cumsum()[::-1] - size
        stick = self.rng.beta(1.0 + size[:-1], self.alpha + after[:-1])
        left = np.concatenate([[1.0], np.cumprod(1 - stick)])
        self.weights = np.append(stick, 1.0) * left
        shape = CONCENTRATION[0] + self.classes - 1
        rate = CONCENTRATION[1] - float(np.log(np.maximum(1 - stick, TINY)).sum())
        self.alpha = max(float(self.rng.gamma(shape, 1 / rate)), 1e-6)

    # ------------------------------------------------------------------ drawing

    def _place(self, chance: NDArray[np.float64]) -> NDArray[np.int64]:
        """Draw one column for each row, with probabilities proportional to its entries."""
        reach = chance.cumsum(axis=1)
        passed = self.rng.random(len(chance))[:, None] * reach[:, -1:] >= reach
        return np.asarray(passed.sum(axis=1).clip(0, chance.shape[1] - 1))

    def _pick(self, value: NDArray[np.int64], chance: NDArray[np.float64]) -> NDArray[np.int64]:
        return value[np.arange(len(value)), self._place(chance)]


def run(
    mixture: Mixture, burn_in: int, tables: int, between: int, progress: Callable[[int], None] | None = None
) -> list[list[NDArray[np.int64]]]:
    """Return the values of all axes for some tables, taken from the chain at intervals."""
    out = []
    for sweep in range(burn_in + tables * between):
        mixture.sweep()
        if progress is not None:
            progress(1)
        if sweep >= burn_in and (sweep - burn_in) % between == between - 1:
            out.append([values.copy() for values in mixture.values])
    return out


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
    """Return whether the records carry enough information on every pair of columns, and combinations can be listed.

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
    """The possible combinations of the records with their probabilities, and the fitted table."""

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
        """Draw the values of all axes: one imputed table."""
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
        """Return the fit of all records, moved slightly towards independence."""
        total, axes = self.table.sum(), range(self.table.ndim)
        margins = [self.table.sum(axis=tuple(k for k in axes if k != j)) / total for j in axes]
        mixed = (1 - SOFT) * self.table + SOFT * total * product(margins)
        return np.asarray(np.where(self.allowed, mixed, 0.0))

    def _fitted(self, x: Floats, counts: Floats, steps: int) -> Floats:
        walk = Ascent(x, STILL, steps)
        while not walk.has_ended:
            part = self.weight * walk.x.ravel()[self.place]
            sums = np.maximum(part.sum(axis=1), SMALLEST)
            part *= (counts / sums)[:, None]
            expected = np.bincount(self.place.ravel(), part.ravel(), minlength=walk.x.size).astype(np.float64)
            walk.take(raked(walk.x, expected.reshape(self.shape)), float((counts * np.log(sums)).sum()))
        return walk.x


def product(shares: Sequence[Floats]) -> Floats:
    """Return the table in which columns of these shares are independent."""
    out = np.ones(())
    for part in shares:
        out = out[..., None] * part
    return out


def raked(x: Floats, expected: Floats) -> Floats:
    """Run one round of proportional fitting of x to the margins of two columns of another table."""
    for kept in combinations(range(x.ndim), 2):
        gone = tuple(j for j in range(x.ndim) if j not in kept)
        now, then = (table.sum(axis=gone, keepdims=True) for table in (x, expected))
        x = x * np.divide(then, now, out=np.zeros_like(then), where=now > 0)
    return x
