"""A Dirichlet-process mixture of product multinomials, drawn by blocked Gibbs steps on what cells leave possible.

Every record belongs to a class; within a class columns are independent, each with shares of its own. Classes are as
many as the records ask for. A hidden value enters through P(cell | value), so that values are drawn from what was
published and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noren.statements import Cells, Likelihood, Statement

ROWS_AT_ONCE = 1 << 15
CONCENTRATION = (0.25, 0.25)
"""Shape and rate of the prior of the process's concentration: few classes unless the records ask for more."""
PRIOR_RECORDS = 1.0
"""Records that the prior of a class's shares weighs as, spread as the whole column is."""
TINY = 1e-300
ROUNDS = 50
"""Times that records are drawn again because they break a rule; one mended rule may break another."""


@dataclass(frozen=True)
class Axis:
    """One column: which cell each record has, and what the different cells say of its values."""

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
        """The same with the cells of some records taken away: they leave everything possible."""
        widest = max(self.d, self.value.shape[1])
        value = np.pad(self.value, ((0, 1), (0, widest - self.value.shape[1])), mode="edge")
        weight = np.pad(self.weight, ((0, 1), (0, widest - self.weight.shape[1])))
        value[-1, : self.d], weight[-1, : self.d] = np.arange(self.d), 1.0
        cell = self.cell.copy()
        cell[rows] = len(self.value)
        return Axis(self.name, self.d, cell, value, weight)

    @property
    def is_known(self) -> bool:
        """Whether every cell tells its value."""
        return self.value.shape[1] == 1

    def information(self) -> float:
        """How much of a value its cell tells where all values are as likely: 1 if all of it, 0 if nothing."""
        if self.d < 2 or not len(self.cell):
            return 1.0
        spread = self.weight / np.maximum(self.weight.sum(axis=1, keepdims=True), TINY)
        square = float(np.square(spread).sum(axis=1)[self.cell].mean())
        return max((self.d * square - 1) / (self.d - 1), 0.0)

    def mean_shares(self) -> NDArray[np.float64]:
        """Shares of the values, each cell spread over what it leaves possible."""
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
            return axis.value[axis.cell, 0]
        return self._pick(axis.value[axis.cell], axis.weight[axis.cell])

    def sweep(self) -> None:
        """One step of the chain: classes, values, parameters."""
        self._draw_classes()
        self._draw_values()
        self._draw_parameters()

    @property
    def occupied(self) -> int:
        return len(np.unique(self.member))

    # ------------------------------------------------------------------ steps

    def _draw_classes(self) -> None:
        """Classes with the hidden values summed out, so that records move freely."""
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
        """(cells, classes): P(cell | class)."""
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
        """Draw the values of some records; gives which had one to draw besides the one that is not wanted."""
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
        """Draw records that break a rule again, one value of it changed; whether there were any."""
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
        """One column for each row, with chances in proportion to its entries."""
        reach = chance.cumsum(axis=1)
        passed = self.rng.random(len(chance))[:, None] * reach[:, -1:] >= reach
        return np.asarray(passed.sum(axis=1).clip(0, chance.shape[1] - 1))

    def _pick(self, value: NDArray[np.int64], chance: NDArray[np.float64]) -> NDArray[np.int64]:
        return value[np.arange(len(value)), self._place(chance)]


def run(
    mixture: Mixture, burn_in: int, tables: int, between: int, progress: Callable[[int], None] | None = None
) -> list[list[NDArray[np.int64]]]:
    """Values of all axes for each of some tables, taken from the chain at distances."""
    out = []
    for sweep in range(burn_in + tables * between):
        mixture.sweep()
        if progress is not None:
            progress(1)
        if sweep >= burn_in and (sweep - burn_in) % between == between - 1:
            out.append([values.copy() for values in mixture.values])
    return out
