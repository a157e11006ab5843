"""Columns in the form EM works on: codes lead to atoms with P(code | atom), atoms to reported groups.

Each column alone is estimated in full detail: its atoms are the base values that no cell tells apart. Columns together
are estimated at the resolution asked for: there the atoms are reported groups, inside of which values stand in
the proportions that the column alone has shown. Finer tables would fit noise, and cost more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from noren.estimates.counts.rows import Reading, ranges, row_numbers
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
    """An axis of the estimated table. `prior` is proportional to what is expected before records are looked at."""

    codes: NDArray
    rows: Likelihood
    prior: NDArray[np.float64]
    report: csc_array
    """(groups, atoms): which share of an atom is reported where."""

    @property
    def is_told(self) -> bool:
        """Every cell means one atom: the column splits the records."""
        return self.rows.floor == 0 and bool((self.rows.lengths == 1).all())


@dataclass(frozen=True)
class Detail:
    """A column at full detail: its atoms, and the atom (-1: in no cell) and prior weight of every segment."""

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
        """The axis at the resolution asked for, given the estimated number of records of every atom."""
        from noren.estimates.counts.kernels.coarse import condense

        reading, rows, groups = self.reading, self.reading.rows, self.reading.axis.size
        inside = self.atom >= 0
        fitted = np.maximum(table / max(table.sum(), 1e-300), TRACE * self.atoms.prior / self.atoms.prior.sum())
        mass = np.zeros(len(self.mass))
        mass[inside] = (fitted / self.atoms.prior)[self.atom[inside]] * self.mass[inside]
        label = np.where(reading.reported < 0, groups, reading.reported)  # all that is not counted is one more group
        whole = np.bincount(label[inside], mass[inside], minlength=groups + 1).astype(np.float64)
        part = mass[rows.value] * (rows.weight - rows.floor)
        bounds, index, part, _ = condense(rows.bounds, rows.value, part, part, label, groups + 1)
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
    """Atoms from the atom, weight and reported group of their parts."""
    from scipy.sparse import csc_array

    count = int(atom.max(initial=-1)) + 1
    prior = np.bincount(atom[atom >= 0], mass[atom >= 0], minlength=count).astype(np.float64)
    used = (atom >= 0) & (reported >= 0)
    share = mass[used] / prior[atom[used]]
    report = csc_array((share, (reported[used], atom[used])), shape=(reading.axis.size, count))
    return Atoms(codes, rows, prior, report)


def refined(rows: Likelihood, items: int) -> NDArray[np.int64]:
    """Classes of items that the same codes hold."""
    from noren.estimates.counts.kernels.coarse import refine

    label = np.zeros(items, np.int64)
    refine(rows.bounds, rows.value, label, 1)
    return label


def merged(rows: Likelihood, atom: NDArray[np.int64]) -> Likelihood:
    """Codes with the atoms of their items, each once with weight 1."""
    from noren.estimates.counts.kernels.coarse import condense

    count = int(atom.max(initial=-1)) + 1
    bounds, index, _, _ = condense(rows.bounds, rows.value, rows.weight, rows.weight, atom, count)
    return Likelihood(bounds, index, np.ones(len(index)))


def merge_codes(rows: Likelihood) -> tuple[NDArray[np.int64], Likelihood]:
    """Codes that lead to the same atoms with the same weights are one: their new numbers, and the rows of those."""
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
