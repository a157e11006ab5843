"""The lattice of level vectors: one height per quasi-identifier, from the values themselves up to the roots.

A table's distinct quasi-identifier values, with numbers of records and sparse histograms of the sensitive columns, are
enough to form and test the classes of any level vector; the classes of one vector are enough for all vectors above it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import ceil, prod
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from noren.engines import Records
from noren.errors import PolicyError, Problem
from noren.methods import kernels as kinds
from noren.methods.cover import automatic_hierarchy
from noren.methods.requirements import Compiled
from noren.ragged import distinct_of, first_of, offsets_of, owners, row_numbers
from noren.schema.column import Column
from noren.schema.nodes import Tree, tree_of

Loss = Literal["granularity", "ncp", "entropy", "height", "discernibility", "class-size"]
LOSSES: tuple[str, ...] = get_args(Loss)
TIES = 1e-6
"""The part of granularity in the loss by height."""
OF_CLASSES: tuple[str, ...] = ("discernibility", "class-size")
"""Losses that depend on the sizes of classes, and on no column more than another."""


LARGEST = 5_000_000
"""Level vectors that a search covers, at most."""
KEPT = 32
"""Tested level vectors whose classes are kept, to form others from."""
HEREDITARY = (kinds.K_ANONYMITY, kinds.DISTINCT, kinds.P_SENSITIVE)
"""Requirements that no part of a failing class meets."""

Levels = tuple[int, ...]


class Held(NamedTuple):
    """The sensitive values of entries, numbered through all columns, with their record counts."""

    entry: NDArray[np.int64]
    value: NDArray[np.int64]
    weight: NDArray[np.int64]


@dataclass(frozen=True)
class Entries:
    """Distinct values of the quasi-identifiers, or classes of them: a row of each, its records and its sensitive
    values."""

    levels: Levels
    rows: NDArray[np.int64]
    sizes: NDArray[np.int64]
    held: Held


@dataclass(frozen=True)
class Tested:
    """A tested level vector: records in failing classes, those that every lower vector also loses, and its loss.

    `floor` is a lower bound of the loss here and at every more general vector. The loss itself counts only where no
    more records fail than may be dropped.
    """

    dropped: int
    below: int
    loss: float
    floor: float


class Lattice:
    """All level vectors of a table, and their tests."""

    def __init__(self, table: Records, compiled: Compiled, loss: str, limit: int, weights: Mapping[str, float]) -> None:
        self.n, self.limit, self.loss, self.compiled = table.n, limit, loss, compiled
        facts = [table.columns[name] for name in table.quasi]
        self.trees: list[Tree] = [tree_of(automatic_hierarchy(one, table.codes[one.name])) for one in facts]
        self.shape: Levels = tuple(tree.height + 1 for tree in self.trees)
        if prod(self.shape) > LARGEST:
            raise PolicyError([_too_large(prod(self.shape))])
        self.least, self.needed = smallest_classes(compiled)
        self.sizes_only = all(kind == kinds.K_ANONYMITY for kind, *_ in compiled)
        self.monotone = limit == 0 or all(kind in HEREDITARY for kind, *_ in compiled)
        """Whether a vector that loses too many records rules out all vectors below it."""
        self.groups = [[np.unique(level, return_inverse=True)[1].ravel() for level in tree.at] for tree in self.trees]
        """Per column and height: the group of every leaf."""
        self.everyone = self._distinct(table)
        self._kept: dict[Levels, Entries] = {}
        counts = [table.counts(column.name) for column in facts]
        cells = cell_losses(loss, facts, self.trees, counts, weights)
        self.penalties = [part.penalty for part in cells]
        means = [part.cost @ count / max(1, self.n) for part, count in zip(cells, counts, strict=True)]
        self.means: NDArray[np.float64] = np.asarray(reduce(np.add.outer, means)).reshape(self.shape)
        """Mean cell loss of every level vector while nobody is dropped."""
        self.tested = 0

    def _distinct(self, table: Records) -> Entries:
        """Return distinct rows of the quasi-identifiers, with histograms if sensitive columns have requirements."""
        self.codes = np.stack([np.asarray(table.codes[name], np.int32) for name in table.quasi])
        names = () if self.sizes_only else self.compiled.sensitive
        self.first_of = offsets_of([len(table.columns[name].domain) for name in names])
        values = [table.codes[name] + self.first_of[j] for j, name in enumerate(names)]
        everyone, ones = np.arange(table.n), np.ones(table.n, np.int64)
        held = Held(np.tile(everyone, len(names)), np.concatenate([everyone[:0], *values]), np.tile(ones, len(names)))
        levels = (0,) * len(self.shape)
        records = Entries(levels, everyone, ones, held)
        self.entry_of, rows, sizes = self._classes(records, levels)
        self.codes = np.ascontiguousarray(self.codes[:, rows])
        return Entries(levels, np.arange(len(rows)), sizes, self._rolled_up(records, self.entry_of))

    def _classes(
        self, source: Entries, levels: Levels
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the class of every entry, and representative row and size of every class."""
        groups = [column[level] for column, level in zip(self.groups, levels, strict=True)]
        split = [i for i, group in enumerate(groups) if group.any()]
        columns = [groups[i][self.codes[i, source.rows]] for i in split]
        found = row_numbers(columns, [int(groups[i].max()) + 1 for i in split], len(source.rows))
        sizes = np.bincount(found, source.sizes).astype(np.int64)
        return found, source.rows[first_of(found)], sizes

    def _rolled_up(self, source: Entries, classes: NDArray[np.int64]) -> Held:
        """Return the sensitive values of the classes."""
        entry, value, weight = source.held
        span = int(self.first_of[-1])
        key, _, number = distinct_of(classes[entry] * span + value)
        return Held(key // max(1, span), key % max(1, span), np.bincount(number, weight).astype(np.int64))

    def _failing(self, held: Held, sizes: NDArray[np.int64]) -> tuple[NDArray[np.bool_], int, int]:
        """Return which classes fail, their records, and the records that every lower level vector loses too.

        The latter lie in classes with fewer records or values than any part may have. Counting stops where more
        records fail than may be dropped.
        """
        fails = sizes < self.least
        if not self.sizes_only and int(sizes[fails].sum()) <= self.limit:
            columns = owners(self.first_of)[held.value]
            many = len(self.needed)
            seen = np.bincount(held.entry * many + columns, minlength=len(sizes) * many).reshape(-1, many)
            fails = fails | (seen < self.needed).any(axis=1)
        below = dropped = int(sizes[fails].sum())
        if not self.sizes_only and dropped <= self.limit:
            bounds = np.searchsorted(held.entry, np.arange(len(sizes) + 1))
            judged = np.where(fails, 0, sizes)
            values = held.value - self.first_of[columns]
            rest = kinds.failing_classes(
                bounds, columns, values, held.weight, judged, self.limit - dropped, self.compiled.rules
            )
            fails = fails | rest
            dropped = int(sizes[fails].sum())
        return fails, dropped, dropped if self.monotone else below

    def test(self, levels: Levels) -> Tested:
        """Form the classes of a level vector from the smallest available entries and test them."""
        self.tested += 1
        source = self._source(levels)
        classes, rows, sizes = self._classes(source, levels)
        held = source.held if self.sizes_only else self._rolled_up(source, classes)
        if len(rows) * 2 < len(source.rows):
            self._keep(Entries(levels, rows, sizes, held))
        fails, dropped, below = self._failing(held, sizes)
        if self.loss in OF_CLASSES:
            floor, loss = self._loss_of_classes(sizes, fails)
            return Tested(dropped, below, loss, floor)
        loss = floor = float(self.means[levels])
        if 0 < dropped <= self.limit:
            extra = sum(
                penalty[level][codes[rows[fails]]]
                for penalty, level, codes in zip(self.penalties, levels, self.codes, strict=True)
            )
            loss += float(extra @ sizes[fails]) / self.n
        return Tested(dropped, below, loss, floor)

    def _loss_of_classes(self, sizes: NDArray[np.int64], fails: NDArray[np.bool_]) -> tuple[float, float]:
        """Return the loss without suppression, and with the failing classes suppressed."""
        if self.loss == "class-size":
            return self.n / len(sizes), self.n / max(1, int((~fails).sum()))
        squares = sizes.astype(np.float64) ** 2
        return float(squares.sum()), float(squares[~fails].sum()) + float(self.n) * float(sizes[fails].sum())

    def _source(self, levels: Levels) -> Entries:
        fits = [kept for kept in self._kept.values() if all(map(int.__le__, kept.levels, levels))]
        return min([self.everyone, *fits], key=lambda entries: len(entries.rows))

    def _keep(self, entries: Entries) -> None:
        self._kept[entries.levels] = entries
        if len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]

    def published(self, levels: Levels) -> tuple[NDArray[np.bool_], int]:
        """Return which records the valid classes of a level vector publish, and the number of classes."""
        classes, _, sizes = self._classes(self.everyone, levels)
        fails, _, _ = self._failing(self._rolled_up(self.everyone, classes), sizes)
        return ~fails[classes][self.entry_of], int((~fails).sum())


def smallest_classes(compiled: Compiled) -> tuple[int, NDArray[np.int64]]:
    """Return the smallest number of records of a class, and of values of each sensitive column, that the requirements
    imply."""
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


# ---------------------------------------------------------------- what a level vector costs


@dataclass(frozen=True)
class CellLosses:
    """Losses per cell: cost[h, leaf] at height h, and penalty[h, leaf] for suppressing its record."""

    cost: NDArray[np.float64]
    penalty: NDArray[np.float64]


def cell_losses(
    loss: str,
    facts: Sequence[Column],
    trees: Sequence[Tree],
    counts: Sequence[NDArray],
    weights: Mapping[str, float],
) -> list[CellLosses]:
    """Return the contribution of every column to the loss of a record. Class-size losses are ordered by granularity."""
    given = np.array([weights.get(column.name, 1.0) for column in facts])
    if loss == "height":
        climbs = given * [tree.height for tree in trees]
        levels = _weighted(climbs / climbs.sum(), "height", facts, trees, counts)
        ties = _weighted(TIES * given / given.sum(), "granularity", facts, trees, counts)
        return [CellLosses(a.cost + b.cost, a.penalty + b.penalty) for a, b in zip(levels, ties, strict=True)]
    return _weighted(given / given.sum(), loss, facts, trees, counts)


def _weighted(
    shares: NDArray[np.float64],
    loss: str,
    facts: Sequence[Column],
    trees: Sequence[Tree],
    counts: Sequence[NDArray],
) -> list[CellLosses]:
    tables = [_column(loss, *column) for column in zip(facts, trees, counts, strict=True)]
    return [CellLosses(w * cost, w * penalty) for w, (cost, penalty) in zip(shares.tolist(), tables, strict=True)]


def _column(loss: str, facts: Column, tree: Tree, counts: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    at, d = tree.at, tree.at.shape[1]
    if loss == "entropy":
        return _entropy(at, counts)
    if loss == "height":
        cost = np.repeat(np.arange(len(at))[:, None] / tree.height, d, axis=1)
    elif loss == "ncp" and (spread := _spread(facts, tree)) is not None:
        cost = spread[at]
    else:
        cost = (tree.nodes.sizes[at] - 1) / max(1, d - 1)
    return cost, 1 - cost


def _spread(facts: Column, tree: Tree) -> NDArray[np.float64] | None:
    """Return the width of every node of a numeric column as a share of the column's."""
    if not facts.domain.is_ranked or (facts.domain.numbers is None and facts.domain.kind == "string"):
        return None
    numbers = facts.domain.line()
    flat, bounds = tree.nodes.flat_members()
    low = np.fmin.reduceat(numbers[flat], bounds[:-1])
    high = np.fmax.reduceat(numbers[flat], bounds[:-1])
    return np.asarray(np.nan_to_num(high - low))


def _entropy(at: NDArray[np.int64], counts: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    n = counts.sum()
    under = np.stack([np.bincount(level, counts)[level] for level in at])
    logs = np.log(np.maximum(under, 1))
    whole = float((counts * (np.log(n) - logs[0])).sum() / n)
    scale = 1 / whole if whole > 0 else 0.0
    return (logs - logs[0]) * scale, (np.log(n) - logs) * scale
