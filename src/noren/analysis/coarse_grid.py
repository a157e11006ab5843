"""The table that EM fills, the records as rows of it, and how a step over all rows is worked out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from noren.analysis.coarse_atoms import Atoms
from noren.analysis.coarse_cells import Packed, distinct, joined, ranges, sizes_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SHARED_CELLS = 20_000_000  # most sums that rows have in common
THREADED = 100_000  # rows from which a step is split between threads
CHUNKS = 4  # a fixed number, so that sums do not depend on the machine
PRIVATE_CELLS = 2_000_000  # of a table that every chunk sums for itself


@dataclass(frozen=True)
class Plan:
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
        for i, j in enumerate(grid.hidden[:depth]):
            links = grid.axes[j].links
            entry, offsets = ranges(links.bounds[ids[row, i]], links.bounds[ids[row, i] + 1])
            again = np.repeat(np.arange(len(row)), np.diff(offsets))
            row, cell = row[again], cell[again] * grid.shape[i + 1] + links.index[entry]
            weight = weight[again] * links.weight[entry]
        shape = (len(ids), prod(grid.shape[: depth + 1]))
        return np.cumsum(new) - 1, csr_array((weight, (row, cell)), shape=shape)

    @cached_property
    def arrays(self) -> tuple[NDArray, ...]:
        """The rows in an order that reads the larger tables from front to back, and what their codes lead to."""
        grid = self.grid
        links = [grid.axes[j].links for j in grid.hidden[self.depth :]]
        packed, sizes, slot = Packed.of(links), sizes_of(grid.shape[self.depth + 1 :]), self.shared[0]
        order = np.arange(len(slot))
        if len(packed.index) > (int(slot[-1]) + 1) * int(sizes[0]):
            order = np.argsort(grid.ids[:, -1], kind="stable")
        ids = np.ascontiguousarray(grid.ids[order, self.depth :])
        weight = joined([link.weight for link in links])
        return order, slot[order], ids, packed.ptr, packed.first, packed.index, weight, sizes

    def sums(self, x: NDArray[np.float64], counts: NDArray[np.float64]) -> tuple[NDArray, NDArray]:
        """sum_i counts_i L_i(c) / sum_b x_b L_i(b) of every cell, and the rows' sums."""
        from noren.kernels.coarse import em_pass

        order, slot, ids, ptr, first, index, weight, sizes = self.arrays
        matrix = self.shared[1]
        table = x if matrix is None else (matrix @ x.reshape(matrix.shape[1], -1)).ravel()
        amounts, found = counts[order], np.empty(len(counts))

        def part(a: int, b: int) -> NDArray[np.float64]:
            acc = np.zeros(table.size)
            em_pass(slot[a:b], ids[a:b], amounts[a:b], ptr, first, index, weight, sizes, table, acc, found[a:b])
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

    @classmethod
    def of(cls, axes: Sequence[Atoms], n: int) -> Grid:
        """Records that a told axis leaves uncounted are dropped: they say nothing about other slots."""
        told = [j for j, axis in enumerate(axes) if axis.is_told]
        hidden = sorted((j for j in range(len(axes)) if j not in told), key=lambda j: len(axes[j].links.bounds))
        kept = np.ones(n, np.bool_)
        split = []
        for j in told:
            atoms = axes[j].links.index[axes[j].codes]
            kept &= (np.diff(axes[j].report.indptr) > 0)[atoms]
            split.append(atoms)
        columns = [*(atoms[kept] for atoms in split), *(axes[j].codes[kept] for j in hidden)]
        ids, counts = distinct(columns, int(kept.sum()))
        leading = ids[:, : len(told)]
        new = np.ones(len(ids), np.bool_)
        new[1:] = (leading[1:] != leading[:-1]).any(axis=1)
        slot = np.cumsum(new) - 1
        return cls(axes, told, hidden, leading[new], slot, np.ascontiguousarray(ids[:, len(told) :]), counts)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.slots), *(len(self.axes[j].prior) for j in self.hidden))

    @cached_property
    def plan(self) -> Plan:
        """The cheapest way to take a step."""
        sizes = sizes_of(self.shape[1:]).astype(np.float64)
        lengths = [self.axes[j].links.lengths[self.ids[:, i]].astype(float) for i, j in enumerate(self.hidden)]
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
        return Plan(self, depth, best)

    def step(
        self, x: NDArray[np.float64], counts: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """One EM step for some of the records, and each row's likelihood under x."""
        acc, sums = self.plan.sums(x, counts)
        return x * acc, sums

    def start(self) -> NDArray[np.float64]:
        """The axes independent: the slots' records times the hidden axes' priors. Sums to 1."""
        x = np.asarray(np.bincount(self.slot, self.counts, minlength=len(self.slots)) / self.counts.sum())
        for j in self.hidden:
            x = np.multiply.outer(x, self.axes[j].prior / self.axes[j].prior.sum()).ravel()
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
