"""The lattice of level vectors: one height per quasi-identifier, from the values themselves up to the roots.

A table's distinct quasi-identifier values, with numbers of records and sparse histograms of the sensitive columns, are
enough to form and test the classes of any level vector; the classes of one vector are enough for all vectors above it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from math import ceil, prod

import numpy as np
from numpy.typing import NDArray

from noren.engines import Records
from noren.errors import PolicyError, Problem
from noren.methods import kernels as kinds
from noren.methods.cover import automatic_hierarchy
from noren.methods.incognito import kernels
from noren.methods.incognito.losses import OF_CLASSES, cell_losses
from noren.methods.requirements import Compiled
from noren.ragged import offsets_of, owners
from noren.schema.nodes import Tree, tree_of

LARGEST = 5_000_000
"""Level vectors that a search covers, at most."""
KEPT = 32
"""Tested level vectors whose classes are kept, to form others from."""
HEREDITARY = (kinds.K_ANONYMITY, kinds.DISTINCT, kinds.P_SENSITIVE)
"""Requirements that no part of a failing class meets."""

Levels = tuple[int, ...]


@dataclass(frozen=True)
class Entries:
    """Distinct values of the quasi-identifiers, or classes of them, and what their records hold."""

    levels: Levels
    rows: NDArray[np.int64]
    sizes: NDArray[np.int64]
    held: kernels.Held


@dataclass(frozen=True)
class Tested:
    """A level vector put to the test: records in failing classes, those that every vector below loses too, its loss.

    `floor` is a lower bound of the loss here and at every more general vector. The loss itself counts only where no
    more records fail than may be dropped.
    """

    dropped: int
    below: int
    loss: float
    floor: float


class Lattice:
    """All level vectors of a table, and the means to test one."""

    def __init__(self, table: Records, compiled: Compiled, loss: str, limit: int, weights: Mapping[str, float]) -> None:
        self.n, self.limit, self.loss, self.compiled = table.records, limit, loss, compiled
        facts = [table.columns[name] for name in table.quasi]
        self.trees: list[Tree] = [tree_of(automatic_hierarchy(one, table.codes[one.name])) for one in facts]
        self.shape: Levels = tuple(tree.height + 1 for tree in self.trees)
        if prod(self.shape) > LARGEST:
            raise PolicyError([_too_large(prod(self.shape))])
        self.least, self.needed = smallest_classes(compiled)
        self.sizes_only = all(kind == kinds.K_ANONYMITY for kind, *_ in compiled)
        self.monotone = limit == 0 or all(kind in HEREDITARY for kind, *_ in compiled)
        """Whether a vector that loses too many records rules out all vectors below it."""
        self._lay_out_levels()
        self.bottom = self.everyone = self._distinct(table)
        self._kept: dict[Levels, Entries] = {}
        counts = [table.counts(column.name) for column in facts]
        cells = cell_losses(loss, facts, self.trees, counts, weights)
        self.penalties = np.concatenate([part.penalty.ravel() for part in cells])
        means = [part.cost @ count / max(1, self.n) for part, count in zip(cells, counts, strict=True)]
        self.means: NDArray[np.float64] = np.asarray(reduce(np.add.outer, means)).reshape(self.shape)
        """Mean cell loss of every level vector while nobody is dropped."""
        self.tested = 0

    def _lay_out_levels(self) -> None:
        self.offsets = np.zeros((len(self.trees), max(self.shape)), np.int64)
        self.widths = np.ones_like(self.offsets)
        maps, start = [], 0
        for i, tree in enumerate(self.trees):
            for h, level in enumerate(tree.at):
                groups, group = np.unique(level, return_inverse=True)
                self.offsets[i, h], self.widths[i, h] = start, len(groups)
                maps.append(group.ravel())
                start += len(level)
        self.maps = np.concatenate(maps).astype(np.int32)

    def _distinct(self, table: Records) -> Entries:
        """Distinct rows of the quasi-identifiers; with requirements on sensitive columns, their histograms too."""
        self.codes = np.stack([np.asarray(table.codes[name], np.int32) for name in table.quasi], axis=1)
        domains = [len(table.columns[name].domain) for name in self.compiled.sensitive]
        self.first_of = offsets_of(domains)
        self.column_of = owners(self.first_of)
        times = np.ones(table.n, np.int64) if table.times is None else table.times
        held = kernels.Held(np.zeros(table.n + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int64))
        if not self.sizes_only:
            columns = [table.codes[name] + self.first_of[j] for j, name in enumerate(self.compiled.sensitive)]
            values = np.stack(columns, axis=1).astype(np.int32).ravel()
            held = kernels.Held(np.arange(table.n + 1) * len(columns), values, np.repeat(times, len(columns)))
        levels = (0,) * len(self.shape)
        records = Entries(levels, np.arange(table.n), times, held)
        self.entry_of, rows, sizes = self._classes(records, levels)
        held = self._rolled_up(records, self.entry_of, len(rows))
        self.codes = np.ascontiguousarray(self.codes[rows])
        return Entries(levels, np.arange(len(rows)), sizes, held)

    def _classes(
        self, source: Entries, levels: Levels
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
        """Class of every entry of the source, and representative row and size of every class."""
        found = np.empty(len(source.rows), np.int32)
        where = np.array(levels, np.int64)
        count = kernels.level_classes(self.codes, self.maps, self.offsets, self.widths, where, source.rows, found)
        return found, *kernels.sized(found, count, source.rows, source.sizes)

    def _rolled_up(self, source: Entries, classes: NDArray[np.int32], count: int) -> kernels.Held:
        if self.sizes_only:
            return source.held
        held: kernels.Held = kernels.rolled_up(classes, count, source.held, int(self.first_of[-1]))
        return held

    def _failing(
        self, source: Entries, classes: NDArray[np.int32], sizes: NDArray[np.int64]
    ) -> tuple[NDArray[np.bool_], int, int]:
        if self.sizes_only:
            fails, dropped = kernels.small_classes(sizes, self.least)
            return fails, dropped, dropped
        limits = kernels.Limits(self.column_of, self.first_of, self.least, self.needed, self.limit, self.monotone)
        fails, dropped, below = kernels.failing_at_levels(classes, sizes, source.held, limits, self.compiled.rules)
        return fails, dropped, dropped if self.monotone else below

    def test(self, levels: Levels) -> Tested:
        """Form the classes of a level vector from the fewest entries at hand and see which fail."""
        self.tested += 1
        source = self._source(levels)
        classes, rows, sizes = self._classes(source, levels)
        if len(rows) * 2 < len(source.rows):
            self._keep(Entries(levels, rows, sizes, self._rolled_up(source, classes, len(rows))))
        fails, dropped, below = self._failing(source, classes, sizes)
        if self.loss in OF_CLASSES:
            floor, loss = self._loss_of_classes(sizes, fails)
            return Tested(dropped, below, loss, floor)
        loss = floor = float(self.means[levels])
        if 0 < dropped <= self.limit:
            tables = (self.codes, self.penalties, self.offsets, np.array(levels, np.int64))
            loss += kernels.penalty_of(fails, sizes, rows, *tables) / self.n
        return Tested(dropped, below, loss, floor)

    def _loss_of_classes(self, sizes: NDArray[np.int64], fails: NDArray[np.bool_]) -> tuple[float, float]:
        """Loss while nobody is dropped, and loss with the failing classes dropped."""
        if self.loss == "class-size":
            return self.n / len(sizes), self.n / max(1, int((~fails).sum()))
        squares = sizes.astype(np.float64) ** 2
        return float(squares.sum()), float(squares[~fails].sum()) + float(self.n) * float(sizes[fails].sum())

    def _source(self, levels: Levels) -> Entries:
        fits = [kept for kept in self._kept.values() if all(map(int.__le__, kept.levels, levels))]
        return min([self.bottom, *fits], key=lambda entries: len(entries.rows))

    def _keep(self, entries: Entries) -> None:
        self._kept[entries.levels] = entries
        if len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]

    def raise_bottom(self, levels: Levels) -> None:
        """Start all later tests from the classes of this level vector; none below it will be asked for."""
        source = self._source(levels)
        classes, rows, sizes = self._classes(source, levels)
        self.bottom = Entries(levels, rows, sizes, self._rolled_up(source, classes, len(rows)))
        self._kept = {at: kept for at, kept in self._kept.items() if len(kept.rows) < len(rows)}

    def published(self, levels: Levels) -> tuple[NDArray[np.bool_], int]:
        """Which records the classes that hold at a level vector publish, and how many classes those are."""
        classes, _, sizes = self._classes(self.everyone, levels)
        fails, _, _ = self._failing(self.everyone, classes, sizes)
        return ~fails[classes][self.entry_of], int((~fails).sum())


def smallest_classes(compiled: Compiled) -> tuple[int, NDArray[np.int64]]:
    """Fewest records of a class, and fewest values of each sensitive column, that the requirements imply."""
    least, needed = 1, np.zeros(len(compiled.sensitive), np.int64)
    for kind, column, first, second in compiled:
        if kind == kinds.K_ANONYMITY:
            least = max(least, ceil(first))
        if kind in (kinds.ALPHA_K, kinds.P_SENSITIVE):
            least = max(least, ceil(second))
        if kind in (kinds.DISTINCT, kinds.P_SENSITIVE, kinds.FREQUENCY, kinds.ENTROPY):
            needed[column] = max(needed[column], ceil(first - 1e-6))
        if kind == kinds.RECURSIVE:
            needed[column] = max(needed[column], int(second))
    return max([least, *needed.tolist()]), needed


def _too_large(count: int) -> Problem:
    message = f"the hierarchies have {count:,} combinations of levels; the search covers {LARGEST:,}."
    hint = "Give hierarchies fewer levels, make fewer columns quasi-identifiers, or use another method."
    return Problem("method", message, hint)
