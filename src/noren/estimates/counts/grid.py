"""The table that EM fills, the records as its sparse rows, and the computation of a step.

Columns in the form EM works on: codes lead to atoms with P(code | atom), atoms to reported groups.

Each column alone is estimated in full detail: its atoms are the base values that no cell distinguishes. Columns
together are estimated at the resolution asked for: there the atoms are reported groups, inside of which values stand in
the proportions that the column alone has shown. Finer tables would fit noise, and cost more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError
from noren.estimates.counts.axes import Weights
from noren.estimates.counts.held_out import COARSE, DRAWN, Outset, Stopping, even_folds, folds_of, search
from noren.estimates.counts.rows import Reading, distinct_rows, ranges, row_numbers, sum_by_label
from noren.estimates.counts.tuples import Fit, Progress, Tuples, converge, identity
from noren.statements import Likelihood
from noren.statements.batch import number

if TYPE_CHECKING:
    from scipy.sparse import csc_array


FLOOR = 0.01  # of the mean weight: what a value of weight 0 starts with, since nothing says that it cannot occur
TRACE = 1e-9  # of its start: what a value keeps that the column alone has ruled out
MERGED = 64  # entries: longer codes are not compared with each other
WHOLE = 1 - 1e-6  # a code that covers this share of a group covers it


@dataclass(frozen=True)
class Atoms:
    """An axis of the estimated table. `prior` is proportional to the expected counts before any record is read."""

    codes: NDArray
    rows: Likelihood
    prior: NDArray[np.float64]
    report: csc_array
    """(groups, atoms): which share of an atom is reported where."""

    @property
    def is_told(self) -> bool:
        """Return whether every cell determines one atom, so that the column splits the records."""
        return self.rows.floor == 0 and bool((self.rows.lengths == 1).all())


@dataclass(frozen=True)
class Detail:
    """A column at full detail: its atoms, and the atom (-1 for none) and prior weight of every segment."""

    reading: Reading
    atoms: Atoms
    atom: NDArray[np.int64]
    mass: NDArray[np.float64]

    @classmethod
    def of(cls, reading: Reading) -> Detail:
        axis, rows = reading.axis, reading.rows
        table = None if axis.is_exact else axis.statement.table
        mass = reading.size
        if table is not None:
            mass = table.totals.astype(np.float64)
        elif axis.weights is not None and reading.mass.sum() > 0:
            mass = reading.mass + FLOOR * reading.mass.sum() / reading.size.sum() * reading.size
        covered = np.full(len(mass), rows.floor > 0)
        covered[rows.value] = True
        atom = np.full(len(mass), -1, np.int64)
        if table is None and rows.floor == 0 and np.all(rows.weight == 1):
            label = refined(rows, len(mass))
            atom[covered] = number(label[covered])[1]
            rows = merged(rows, atom)
        else:
            atom[covered] = np.arange(int(covered.sum()))
            rows = Likelihood(rows.bounds, atom[rows.value], rows.weight, rows.floor)
        used = np.where(covered, reading.reported, -1)
        return cls(reading, _atoms(reading, reading.codes, rows, atom, mass, used), atom, mass)

    def at_report(self, table: NDArray[np.float64]) -> Atoms:
        """Return the axis at the requested resolution, given the estimated number of records of every atom."""
        reading, rows, groups = self.reading, self.reading.rows, self.reading.axis.size
        inside = self.atom >= 0
        fitted = np.maximum(table / max(table.sum(), 1e-300), TRACE * self.atoms.prior / self.atoms.prior.sum())
        mass = np.zeros(len(self.mass))
        mass[inside] = (fitted / self.atoms.prior)[self.atom[inside]] * self.mass[inside]
        label = np.where(reading.reported < 0, groups, reading.reported)  # all that is not counted is one more group
        whole = np.bincount(label[inside], mass[inside], minlength=groups + 1).astype(np.float64)
        part = mass[rows.value] * (rows.weight - rows.floor)
        bounds, index, (part,) = sum_by_label(rows.bounds, rows.value, label, groups + 1, part)
        chance = part / whole[index] + rows.floor
        if rows.floor == 0:
            chance[np.repeat(np.diff(bounds) == 1, np.diff(bounds))] = 1.0  # what is known cancels
        used = np.flatnonzero(whole > 0)
        atom = np.full(groups + 1, -1, np.int64)
        atom[used] = np.arange(len(used))
        if rows.floor == 0 and np.all(chance > WHOLE):  # cells that fit the groups: those always together stay together
            lumped = Likelihood(bounds, index, chance)
            atom[used] = number(refined(lumped, groups + 1)[used])[1]
            found = merged(lumped, atom)
        else:
            found = Likelihood(bounds, atom[index], chance, rows.floor)
        alike, found = merge_codes(found)
        reported = np.append(np.arange(groups), -1)
        return _atoms(reading, alike[reading.codes], found, atom, whole, reported)


def _atoms(
    reading: Reading,
    codes: NDArray,
    rows: Likelihood,
    atom: NDArray[np.int64],
    mass: NDArray[np.float64],
    reported: NDArray[np.int64],
) -> Atoms:
    """Make atoms from the atom, weight and reported group of their parts."""
    from scipy.sparse import csc_array

    count = int(atom.max(initial=-1)) + 1
    prior = np.bincount(atom[atom >= 0], mass[atom >= 0], minlength=count).astype(np.float64)
    used = (atom >= 0) & (reported >= 0)
    share = mass[used] / prior[atom[used]]
    report = csc_array((share, (reported[used], atom[used])), shape=(reading.axis.size, count))
    return Atoms(codes, rows, prior, report)


def refined(rows: Likelihood, items: int) -> NDArray[np.int64]:
    """Group items that occur in the same codes, by the sum of their codes' random words."""
    word = np.random.default_rng(0).integers(0, 1 << 63, len(rows), np.uint64)  # any will do: equal sums by chance
    sums = np.zeros(items, np.uint64)  # have a probability of about items^2 / 2^64
    np.add.at(sums, rows.value, word[rows.owner])
    return np.unique(sums, return_inverse=True)[1]


def merged(rows: Likelihood, atom: NDArray[np.int64]) -> Likelihood:
    """Return codes with the atoms of their items, each once with weight 1."""
    bounds, index, _ = sum_by_label(rows.bounds, rows.value, atom, int(atom.max(initial=-1)) + 1)
    return Likelihood(bounds, index, np.ones(len(index)))


def merge_codes(rows: Likelihood) -> tuple[NDArray[np.int64], Likelihood]:
    """Merge codes with the same atoms and weights: return their new numbers and rows."""
    weights, lengths = np.unique(rows.weight, return_inverse=True)[1], rows.lengths
    new, first, count = np.zeros(len(lengths), np.int64), [np.zeros(0, np.int64)], 0
    for length in np.unique(lengths):
        codes = np.flatnonzero(lengths == length)
        found = np.arange(len(codes))
        if length <= MERGED:
            entries = rows.bounds[codes]
            parts = [part[entries + k] for k in range(length) for part in (rows.value, weights)]
            found = row_numbers(parts, len(codes))
        kept = np.zeros(int(found.max()) + 1, np.int64)
        kept[found] = codes
        new[codes] = count + found
        first.append(kept)
        count += len(kept)
    chosen = np.concatenate(first)
    entries, bounds = ranges(rows.bounds[chosen], rows.bounds[chosen + 1])
    return new, Likelihood(bounds, rows.value[entries], rows.weight[entries], rows.floor)


CELL_LIMIT = 20_000_000
WORK_LIMIT = 2e9  # multiplications of one pass


@dataclass(frozen=True)
class Grid:
    """The records as tuples (slot, codes of the hidden axes), and the table (slot, atoms of the hidden axes).

    Axes whose every cell means one atom are told: together they make the slots, which have no record in common.
    """

    axes: Sequence[Atoms]
    told: list[int]
    hidden: list[int]
    slots: NDArray[np.int64]
    """(slots, told axes): the atom of each told axis."""
    tuples: Tuples
    kept: NDArray[np.bool_]
    """Which rows count."""
    facts: dict[str, Any] = field(default_factory=dict)
    """How the axes' own estimates, from which it starts, were stopped."""
    steps: int = 0
    stopping: Stopping = COARSE

    @classmethod
    def of(cls, axes: Sequence[Atoms], n: int, each: NDArray[np.float64] | None = None) -> Grid:
        """Build the grid without records that an exact axis does not count, because they carry no information about
        other cells. `each` is the weight of every record."""
        told = [j for j, axis in enumerate(axes) if axis.is_told]
        hidden = [j for j in range(len(axes)) if j not in told]
        kept = np.ones(n, np.bool_)
        split = []
        for j in told:
            atoms = axes[j].rows.value[axes[j].codes]
            kept &= (np.diff(axes[j].report.indptr) > 0)[atoms]
            split.append(atoms)
        split, number = [atoms[kept] for atoms in split], int(kept.sum())
        slots, slot = distinct_rows(split, number)[0], row_numbers(split, number)
        rows = [identity(len(slots)), *(axes[j].rows for j in hidden)]
        shape = [len(slots), *(len(axes[j].prior) for j in hidden)]
        tuples = Tuples.build(
            rows, shape, [slot, *(axes[j].codes[kept] for j in hidden)], None if each is None else each[kept]
        )
        return cls(axes, told, hidden, slots, tuples, kept)

    def weighed(self, x: NDArray[np.float64], weights: Weights) -> NDArray[np.float64]:
        """Return the weight of the records in every cell, if records are distributed as in table x."""
        return np.asarray(x * Grid.of(self.axes, len(self.kept), weights.of).tuples.em_pass(x)[0])

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.slots), *(len(self.axes[j].prior) for j in self.hidden))

    def check(self) -> None:
        """Raise if a table would take too long."""
        hint = "Ask for fewer columns, higher levels or wider intervals, or use estimator='spread'."
        cells = prod(self.tuples.products.shape)
        if cells > CELL_LIMIT:
            raise QueryError(f"The likelihood would need {cells:,} cells, more than {CELL_LIMIT:,}.", hint=hint)
        if self.hidden and (work := self.tuples.products.work) > WORK_LIMIT:
            message = f"A step of the likelihood would take {work:.1e} sums, more than {WORK_LIMIT:.0e}."
            raise QueryError(message, hint=hint)

    @property
    def is_single(self) -> bool:
        """Return whether there is one hidden column and one slot."""
        return prod(self.shape) == self.shape[-1]

    def fit(self, max_steps: int, progress: Progress | None = None, tolerance: float | None = None) -> Fit:
        """Return the likelihood estimate: known counts, the maximum of one column, or where held-out records stop."""
        counts = self.tuples.counts
        if not len(counts):
            return Fit(np.zeros(self.shape), 0, self.facts)
        start = self.start(counts)
        if not self.hidden:
            return Fit(start, self.steps, self.facts)
        if self.is_single:  # the maximum is what the start says: it was estimated in full detail
            return Fit(start * self.tuples.em_pass(start)[0], self.steps, self.facts)
        even = self.stopping.is_even and self.stopping.together is None
        held = even_folds(counts) if even else folds_of(counts, together=self.stopping.together)
        folds = np.stack([self.start(counts - one) for one in held.counts.T], axis=-1)
        rule = self.stopping if tolerance is None else replace(self.stopping, still=tolerance)
        found = search(self.tuples, held, Outset.of(self.tuples, held, start, folds), rule, max_steps, progress)
        return Fit(found.table, found.passes, found.facts(held))

    def start(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """The slots' records, if tuple t occurs counts[t] times, by the hidden axes' own estimates, which all records
        have made."""
        x = np.bincount(self.tuples.codes(0), counts, minlength=len(self.slots)).astype(np.float64)
        for j in self.hidden:
            x = np.multiply.outer(x, self.axes[j].prior / self.axes[j].prior.sum())
        return np.asarray(x)

    def sum_groups(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum the table into the reported groups, one dimension per axis in the axes' order."""
        from scipy.sparse import csr_array

        table = table.reshape(self.shape)
        for i, j in enumerate(self.hidden, start=1):
            moved = np.moveaxis(table, i, 0)
            summed = self.axes[j].report @ moved.reshape(len(moved), prod(moved.shape[1:]))
            table = np.moveaxis(summed.reshape(len(summed), *moved.shape[1:]), 0, i)
        row, cell, share = np.arange(len(self.slots)), np.zeros(len(self.slots), np.int64), np.ones(len(self.slots))
        for i, j in enumerate(self.told):
            report = self.axes[j].report
            atoms, indptr = self.slots[row, i], report.indptr.astype(np.int64)
            entry, offsets = ranges(indptr[atoms], indptr[atoms + 1])
            again = np.repeat(np.arange(len(row)), np.diff(offsets))
            row, cell = row[again], cell[again] * report.shape[0] + report.indices[entry]
            share = share[again] * report.data[entry]
        groups = [self.axes[j].report.shape[0] for j in self.told]
        placed = csr_array((share, (cell, row)), shape=(prod(groups), len(self.slots)))
        rest = table.shape[1:]
        out = np.asarray(placed @ table.reshape(len(self.slots), prod(rest))).reshape(*groups, *rest)
        return out.transpose(np.argsort([*self.told, *self.hidden]))


def prepare_rows(
    readings: Sequence[Reading], progress: Progress | None, tolerance: float | None, max_steps: int
) -> Grid:
    """Prepare the table at the requested resolution, after fitting every column separately at full detail."""
    n = len(readings[0].codes)
    tolerance = COARSE.tolerance if tolerance is None else tolerance
    axes, steps, straddling = [], 0, []
    facts: dict[str, Any] = {"stopping": "nothing to estimate", "converged": True}
    for reading in readings:
        detail = Detail.of(reading)
        alone = Grid.of([detail.atoms], n)
        table = detail.atoms.prior
        if reading.fitted is not None and alone.hidden:
            inside = detail.atom >= 0
            table = np.bincount(detail.atom[inside], reading.fitted[inside], minlength=len(table)).astype(np.float64)
            steps, facts = 2, {"stopping": "the expected counts of classes with few possible values", "converged": True}
        elif alone.hidden and len(alone.tuples):
            alone.check()
            start = alone.start(alone.tuples.counts)
            start = start * alone.tuples.em_pass(start)[0]
            found = converge(alone.tuples, start, tolerance, max_steps - 1, progress)
            table, steps, facts = found.table.ravel(), found.iterations + 1, found.diagnostics
        elif n:
            table = np.bincount(detail.atoms.rows.value[reading.codes], minlength=len(table)).astype(np.float64)
        axes.append(detail.at_report(table))
        if reading.axis.statement.nodes is not None and axes[-1].rows.weight.min(initial=1.0) < WHOLE:
            straddling.append(reading.axis.name)
    grid = Grid.of(axes, n)
    grid.check()
    facts = facts | {"cells": prod(grid.shape), "distinct_tuples": len(grid.tuples)}
    if straddling and not grid.is_single and grid.hidden and len(grid.tuples):
        facts["straddling"] = straddling
    drawn = any(reading.axis.is_drawn for reading in readings)
    rule = DRAWN if drawn else COARSE
    if (tight := [i for i, j in enumerate(grid.hidden) if readings[j].fitted is not None]) and len(grid.tuples):
        rule = replace(rule, together=row_numbers([grid.tuples.codes(i + 1) for i in tight], len(grid.tuples)))
    return replace(grid, facts=facts, steps=steps, stopping=rule)
