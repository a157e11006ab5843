"""The table that EM fills, the records as rows of it, and how a step over all rows is worked out.

Columns in the form EM works on: codes lead to atoms with P(code | atom), atoms to reported groups.

Each column alone is estimated in full detail: its atoms are the base values that no cell tells apart. Columns together
are estimated at the resolution asked for: there the atoms are reported groups, inside of which values stand in
the proportions that the column alone has shown. Finer tables would fit noise, and cost more.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError
from noren.estimates.counts.axes import Weights
from noren.estimates.counts.fit import COARSE, DRAWN, Fit, Progress, Stopping, converge
from noren.estimates.counts.rows import PackedRows, Reading, distinct_rows, joined, ranges, row_numbers, sizes_of
from noren.statements import Likelihood
from noren.statements.batch import number

if TYPE_CHECKING:
    from scipy.sparse import csc_array, csr_array


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


CELL_LIMIT = 20_000_000
WORK_LIMIT = 2e9  # multiplications of one pass
SHARED_CELLS = 20_000_000  # most sums that rows have in common
THREADED = 100_000  # rows from which a step is split between threads
CHUNKS = 4  # a fixed number, so that sums do not depend on the machine
PRIVATE_CELLS = 2_000_000  # of a table that every chunk sums for itself


@dataclass(frozen=True)
class SharedSums:
    """How a step is worked out: what rows have in common on the first `depth` hidden axes is summed once, before."""

    grid: Grid
    depth: int
    work: float

    @cached_property
    def shared(self) -> tuple[NDArray[np.int64], csr_array | None]:
        """Each row's (slot, first codes) as a number, and which parts of the table those sum, with their weights."""
        from scipy.sparse import csr_array

        grid, depth = self.grid, self.depth
        if depth == 0:
            return grid.slot, None
        new = np.ones(len(grid.slot), np.bool_)
        new[1:] = (grid.slot[1:] != grid.slot[:-1]) | (grid.ids[1:, :depth] != grid.ids[:-1, :depth]).any(axis=1)
        row = np.arange(int(new.sum()))
        ids, cell, weight = grid.ids[new], grid.slot[new], np.ones(len(row))
        for i in range(depth):
            rows = grid.rows[i]
            entry, offsets = ranges(rows.bounds[ids[row, i]], rows.bounds[ids[row, i] + 1])
            again = np.repeat(np.arange(len(row)), np.diff(offsets))
            row, cell = row[again], cell[again] * grid.inner_shape[i + 1] + rows.value[entry]
            weight = weight[again] * rows.weight[entry]
        shape = (len(ids), prod(grid.inner_shape[: depth + 1]))
        return np.cumsum(new) - 1, csr_array((weight, (row, cell)), shape=shape)

    @cached_property
    def arrays(self) -> tuple[NDArray, ...]:
        """The rows in an order that reads the larger tables from front to back, and what their codes lead to."""
        grid = self.grid
        rows = grid.rows[self.depth :]
        packed, sizes, slot = PackedRows.of(rows), sizes_of(grid.inner_shape[self.depth + 1 :]), self.shared[0]
        order = np.arange(len(slot))
        if len(packed.index) > (int(slot[-1]) + 1) * int(sizes[0]):
            order = np.argsort(grid.ids[:, -1], kind="stable")
        ids = np.ascontiguousarray(grid.ids[order, self.depth :])
        weight = joined([each.weight for each in rows])
        return order, slot[order], ids, packed.ptr, packed.first, packed.index, weight, sizes

    def sums(self, x: NDArray[np.float64], counts: NDArray[np.float64]) -> tuple[NDArray, NDArray]:
        """sum_i counts_i L_i(c) / sum_b x_b L_i(b) of every cell, and the rows' sums."""
        from noren.estimates.counts.kernels.coarse import region_pass

        order, slot, ids, ptr, first, index, weight, sizes = self.arrays
        matrix = self.shared[1]
        table = x if matrix is None else (matrix @ x.reshape(matrix.shape[1], -1)).ravel()
        amounts, found = counts[order], np.empty(len(counts))

        def part(a: int, b: int) -> NDArray[np.float64]:
            acc = np.zeros(table.size)
            region_pass(slot[a:b], ids[a:b], amounts[a:b], ptr, first, index, weight, sizes, table, acc, found[a:b])
            return acc

        if len(counts) < THREADED or table.size > PRIVATE_CELLS:
            acc = part(0, len(counts))
        else:
            edges = np.linspace(0, len(counts), CHUNKS + 1).astype(int)
            with ThreadPoolExecutor(min(CHUNKS, os.cpu_count() or 1)) as pool:
                acc = np.sum(list(pool.map(part, edges[:-1], edges[1:])), axis=0)
        if matrix is not None:
            acc = (matrix.T @ acc.reshape(matrix.shape[0], -1)).ravel()
        sums = np.empty(len(counts))
        sums[order] = found
        return acc, sums


@dataclass(frozen=True)
class Grid:
    """The records as distinct (slot, codes of the hidden axes), and the table (slot, atoms of the hidden axes).

    Axes whose every cell means one atom are told: together they make the slots, which have no record in common.
    """

    axes: Sequence[Atoms]
    told: list[int]
    hidden: list[int]
    slots: NDArray[np.int64]
    """(slots, told axes): the atom of each told axis."""
    slot: NDArray[np.int64]
    ids: NDArray[np.int64]
    counts: NDArray[np.float64]
    kept: NDArray[np.bool_]
    """Which rows count."""
    facts: dict[str, Any] = field(default_factory=dict)
    """How the axes' own estimates, from which it starts, were stopped."""
    steps: int = 0
    stopping: Stopping = COARSE

    @classmethod
    def of(cls, axes: Sequence[Atoms], n: int) -> Grid:
        """Records that a told axis leaves uncounted are dropped: they say nothing about other slots."""
        told = [j for j, axis in enumerate(axes) if axis.is_told]
        hidden = sorted((j for j in range(len(axes)) if j not in told), key=lambda j: len(axes[j].rows.bounds))
        kept = np.ones(n, np.bool_)
        split = []
        for j in told:
            atoms = axes[j].rows.value[axes[j].codes]
            kept &= (np.diff(axes[j].report.indptr) > 0)[atoms]
            split.append(atoms)
        columns = [*(atoms[kept] for atoms in split), *(axes[j].codes[kept] for j in hidden)]
        ids, counts = distinct_rows(columns, int(kept.sum()))
        leading = ids[:, : len(told)]
        new = np.ones(len(ids), np.bool_)
        new[1:] = (leading[1:] != leading[:-1]).any(axis=1)
        slot = np.cumsum(new) - 1
        return cls(axes, told, hidden, leading[new], slot, np.ascontiguousarray(ids[:, len(told) :]), counts, kept)

    def weighed(self, x: NDArray[np.float64], weights: Weights) -> NDArray[np.float64]:
        """What the records weigh in every cell, if the table x says how those that look alike are shared out."""
        columns = [self.axes[j].rows.value[self.axes[j].codes][self.kept] for j in self.told]
        columns += [self.axes[j].codes[self.kept] for j in self.hidden]
        sums = np.bincount(row_numbers(columns, int(self.kept.sum())), weights.of[self.kept], len(self.counts))
        if not self.hidden:
            return np.bincount(self.slot, sums, len(self.slots)).astype(np.float64).reshape(self.shape)
        return np.asarray(x * replace(self, counts=sums.astype(np.float64)).em_pass(x)[0])

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.slots), *(len(self.axes[j].prior) for j in self.hidden))

    @cached_property
    def rows(self) -> list[Likelihood]:
        """What the codes of the hidden axes lead to. Where any value can be true, a last atom `*` stands for all."""
        return [_starred(self.axes[j].rows, len(self.axes[j].prior)) for j in self.hidden]

    @cached_property
    def stars(self) -> list[int]:
        """Dimensions of the table that have a marginal `*`."""
        return [i for i, j in enumerate(self.hidden, start=1) if self.axes[j].rows.floor > 0]

    @property
    def inner_shape(self) -> tuple[int, ...]:
        """The table with its marginals `*`."""
        return tuple(size + (i in self.stars) for i, size in enumerate(self.shape))

    @cached_property
    def sharing(self) -> SharedSums:
        """The cheapest way to take a step."""
        sizes = sizes_of(self.inner_shape[1:]).astype(np.float64)
        lengths = [rows.lengths[self.ids[:, i]].astype(float) for i, rows in enumerate(self.rows)]
        depth, best, shared = 0, np.inf, 0.0
        new = np.ones(len(self.slot), np.bool_)
        new[1:] = self.slot[1:] != self.slot[:-1]
        for level in range(len(self.hidden)):
            leaf = float(np.prod(lengths[level:], axis=0).sum())
            work = shared + leaf * (1.0 if level == len(self.hidden) - 1 else 1.6)
            if work < best and (level == 0 or new.sum() * sizes[level] <= SHARED_CELLS):
                depth, best = level, work
            new[1:] |= self.ids[1:, level] != self.ids[:-1, level]
            shared = float(np.prod(lengths[: level + 1], axis=0)[new].sum()) * sizes[level + 1]
        return SharedSums(self, depth, best)

    def check(self) -> None:
        """Refuse a table that would take too long."""
        hint = "Ask for fewer columns, higher levels or wider intervals, or use estimator='spread'."
        cells = prod(self.inner_shape)
        if cells > CELL_LIMIT:
            raise QueryError(f"The likelihood would need {cells:,} cells, more than {CELL_LIMIT:,}.", hint=hint)
        if self.hidden and (work := self.sharing.work) > WORK_LIMIT:
            message = f"A step of the likelihood would take {work:.1e} sums, more than {WORK_LIMIT:.0e}."
            raise QueryError(message, hint=hint)

    # ------------------------------------------------------------------ as evidence for EM

    def known(self) -> Fit | None:
        if not len(self.counts):
            return Fit(np.zeros(self.shape), 0, self.facts)
        if not self.hidden:
            return Fit(self.start(self.counts) * self.counts.sum(), self.steps, self.facts)
        return None

    @property
    def is_single(self) -> bool:
        return prod(self.shape) == self.shape[-1]

    def alone(self, rule: Stopping, max_steps: int, progress: Progress | None) -> Fit:
        """The maximum is what the start says: it was estimated in full detail."""
        start = self.start(self.counts)
        return Fit(start * self.em_pass(start)[0], self.steps, self.facts)

    def em_pass(
        self,
        x: NDArray[np.float64],
        held: NDArray[np.int32] | None = None,
        floor: NDArray[np.float64] | None = None,
        scale: float = 1.0,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        acc, sums = self.sharing.sums(self._with_stars(x), self.counts if held is None else self.counts - held)
        score = 0.0
        if held is not None:
            chances = np.maximum(scale * sums + (0.0 if floor is None else floor), 1e-300)
            score = float((held * np.log(chances)).sum())  # not a dot product: BLAS wakes threads for it
        return self._without_stars(acc).reshape(x.shape), sums, score

    def _with_stars(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        if not self.stars:
            return x.ravel()
        x = x.reshape(self.shape)
        for i in self.stars:
            x = np.concatenate([x, x.sum(axis=i, keepdims=True)], axis=i)
        return x.ravel()

    def _without_stars(self, acc: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give what the marginals `*` gathered to every value of their axes."""
        if not self.stars:
            return acc
        acc = acc.reshape(self.inner_shape)
        for i in self.stars:
            last = acc.shape[i] - 1
            acc = np.take(acc, range(last), axis=i) + np.take(acc, [last], axis=i)
        return acc

    def start(self, counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """The slots' records times the hidden axes' own estimates, which all records have made. Sums to 1."""
        x = np.asarray(np.bincount(self.slot, self.counts, minlength=len(self.slots)) / self.counts.sum())
        for j in self.hidden:
            x = np.multiply.outer(x, self.axes[j].prior / self.axes[j].prior.sum())
        return x

    def sum_groups(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """The table summed into the reported groups, one dimension per axis in the axes' order."""
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


def _starred(rows: Likelihood, atoms: int) -> Likelihood:
    """Rows with a floor as rows without: the excess of every entry, and the floor at one more atom `*`."""
    if rows.floor == 0:
        return rows
    at = rows.bounds[1:]
    value, weight = np.insert(rows.value, at, atoms), np.insert(rows.weight - rows.floor, at, rows.floor)
    return Likelihood(rows.bounds + np.arange(len(rows.bounds)), value, weight)


def prepare_rows(
    readings: Sequence[Reading], progress: Progress | None, tolerance: float | None, max_steps: int
) -> Grid:
    """The table at the resolution asked for, after every column alone was brought to its maximum in full detail."""
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
            steps, facts = 2, {"stopping": "what is expected of tight classes", "converged": True}
        elif alone.hidden and len(alone.counts):
            alone.check()
            start = alone.start(alone.counts)
            found = converge(alone, start * alone.em_pass(start)[0], tolerance, max_steps - 1, progress)
            table, steps, facts = found.table.ravel(), found.iterations + 1, found.diagnostics
        elif n:
            table = np.bincount(detail.atoms.rows.value[reading.codes], minlength=len(table)).astype(np.float64)
        axes.append(detail.at_report(table))
        if reading.axis.statement.nodes is not None and axes[-1].rows.weight.min(initial=1.0) < WHOLE:
            straddling.append(reading.axis.name)
    grid = Grid.of(axes, n)
    grid.check()
    facts = facts | {"cells": prod(grid.shape), "distinct_tuples": len(grid.counts)}
    if straddling and not grid.is_single and grid.hidden and len(grid.counts):
        facts["straddling"] = straddling
    drawn = any(reading.axis.is_drawn for reading in readings)
    rule = DRAWN if drawn else COARSE
    if (tight := [i for i, j in enumerate(grid.hidden) if readings[j].fitted is not None]) and len(grid.counts):
        rule = replace(rule, together=row_numbers([grid.ids[:, i] for i in tight], len(grid.ids)))
    return replace(grid, facts=facts, steps=steps, stopping=rule)
