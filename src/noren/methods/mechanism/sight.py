"""What the minimality adversary sees: everybody's quasi-identifiers, the published classes, and whom each can hold.

Whose row is whose is not in it, and no rule looks at anybody's secret.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.engines import Records
from noren.engines.finding import Finder, exact_nodes
from noren.engines.records import QUASI
from noren.models.class_check import ClassModel
from noren.models.histograms import Histograms
from noren.ragged import first_of, row_numbers
from noren.release.published import Published
from noren.statements import Statement

AT_ONCE = 1 << 22
"""Cells of histograms that are judged at once."""


@dataclass(frozen=True)
class Sight:
    """One secret of a release beside everybody's quasi-identifiers. People who are alike in those are one item."""

    table: Records
    """Everybody. Only quasi-identifiers are looked at."""
    secret: Statement
    models: Sequence[ClassModel]
    """What is required of the secret in every class."""
    k: int
    item: NDArray[np.int64]
    """The item of every person."""
    row_class: NDArray[np.int64]
    """The class of every published row."""
    counts: NDArray[np.float64]
    """(classes, values): how many rows of every class have every value; a general value counts for all under it."""
    width: NDArray[np.float64]
    """(classes, columns): how many base values the class leaves open, for the columns that say it."""
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    """(classes, columns): the least and the largest of these values, in the published order."""
    codes: NDArray[np.int32]
    """(items, columns): what every item has in the same columns and order; -1 for what no class lists."""
    names: tuple[str, ...]
    """These columns."""
    pair_item: NDArray[np.int64]
    pair_class: NDArray[np.int64]
    """Every item with every class that covers it."""
    means: NDArray[np.float64]
    """(classes, columns): the published means, where columns have such."""
    averaged: tuple[str, ...]
    """The columns that are published as means."""
    asked: NDArray[np.int64] | None = None
    """The items that beliefs are asked for, ascending; all, if none are named."""
    memory: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)
    """What was worked out of people and classes alone, for every secret."""

    @classmethod
    def of(cls, published: Published, table: Records, secret: Statement, models: Sequence[ClassModel], k: int) -> Sight:
        """The release as the adversary who knows everybody in the table sees it."""
        quasi, cells, row_class = _published_classes(published, secret)
        first = first_of(row_class)
        searched = [one for one in quasi if one.is_key and not one.column.is_open and one.name in table.codes]
        nodes = [exact_nodes(one.d) if one.nodes is None else one.nodes for one in searched]
        data = [np.asarray(one.key(cells[one.name]), np.int64)[first] for one in searched]
        finder = Finder(nodes, data, len(first))
        named = [name for name in table.quasi if name != secret.name]
        item = row_numbers([table.codes[n] for n in named], [table.columns[n].d for n in named], table.n)
        example = first_of(item)
        codes = [placed(table, one).astype(np.int32)[table.codes[one.name][example]] for one in searched]
        who, group = finder.pairs(codes, len(example))
        sizes = np.diff(finder.bounds)
        pair_item = np.repeat(who, sizes[group])
        reach = np.concatenate([[0], np.cumsum(sizes[group])])
        inside = np.arange(reach[-1]) - np.repeat(reach[:-1], sizes[group])
        pair_class = finder.order[np.repeat(finder.bounds[group], sizes[group]) + inside]
        widths = [one.sizes[node] for one, node in zip(nodes, data, strict=True)]
        low = [one.starts[one.bounds[node]] for one, node in zip(nodes, data, strict=True)]
        high = [one.stops[one.bounds[node + 1] - 1] - 1 for one, node in zip(nodes, data, strict=True)]
        averaged = [one for one in quasi if getattr(one, "numbers", None) is not None]
        means = [one.numbers[one.key(cells[one.name])][first] for one in averaged]  # type: ignore[attr-defined]
        return cls(
            table, secret, models, k, item, row_class, counted(secret, cells[secret.name], row_class, len(first)),
            _beside(widths, len(first)).astype(np.float64), _beside(low, len(first)), _beside(high, len(first)),
            _beside(codes, len(example)).astype(np.int32, copy=False), tuple(one.name for one in searched),
            pair_item, pair_class, _beside(means, len(first)), tuple(one.name for one in averaged),
        )  # fmt: skip

    def about(self, published: Published, secret: Statement, models: Sequence[ClassModel], k: int) -> Sight | None:
        """The same people and classes beside another secret; None where that is one of the columns that find them."""
        if secret.role in QUASI or self.secret.role in QUASI:
            return None
        cells = published.cells([secret.name])[secret.name]
        counts = counted(secret, cells, self.row_class, self.classes)
        return replace(self, secret=secret, models=models, k=k, counts=counts, asked=None)

    def asking(self, items: NDArray[np.int64]) -> Sight:
        """The same, with beliefs about some items only."""
        return replace(self, asked=items)

    # ------------------------------------------------------------------ items and classes

    @property
    def d(self) -> int:
        return self.counts.shape[1]

    @cached_property
    def items(self) -> int:
        return int(self.item.max(initial=-1)) + 1

    @property
    def classes(self) -> int:
        return len(self.counts)

    @cached_property
    def people(self) -> NDArray[np.int64]:
        """People of every item."""
        return np.bincount(self.item, minlength=self.items)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Rows of every class."""
        return np.rint(self.counts.sum(axis=1)).astype(np.int64)

    @cached_property
    def overall(self) -> NDArray[np.float64]:
        """The distribution of the secret in the whole release."""
        total = self.counts.sum(axis=0)
        return np.asarray(total / max(1.0, float(total.sum())))

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """(classes, values): what every class says about its members."""
        return np.asarray(self.counts / np.maximum(1e-300, self.counts.sum(axis=1, keepdims=True)))

    @cached_property
    def before(self) -> NDArray[np.float64]:
        """(items, values): what the classes alone tell, a row being as likely anybody's whom it covers."""
        pooled = self.pooled(np.ones(self.classes, bool), self.people)
        return normal(pooled, self.overall)

    @cached_property
    def place(self) -> NDArray[np.int64]:
        """The line of every item in tables of beliefs; -1 for one that is not asked for."""
        if self.asked is None:
            return np.arange(self.items)
        out = np.full(self.items, -1, np.int64)
        out[self.asked] = np.arange(len(self.asked))
        return out

    @property
    def asked_people(self) -> NDArray[np.int64]:
        """People of every item that is asked for."""
        return self.people if self.asked is None else self.people[self.asked]

    @cached_property
    def highest(self) -> NDArray[np.float64]:
        """The largest share of a value in any class that covers an item: more than that no class says of its people."""
        out = np.zeros(self.items)
        np.maximum.at(out, self.pair_item, self.shares.max(axis=1)[self.pair_class])
        out = np.where(out > 0, out, self.overall.max())
        return out if self.asked is None else out[self.asked]

    def pooled(self, some: NDArray[np.bool_], people: NDArray) -> NDArray[np.float64]:
        """(items asked for, values): rows of some classes, each shared out among those of these people it covers."""
        from scipy.sparse import csr_array

        covered = np.bincount(self.pair_class, people[self.pair_item], minlength=self.classes)
        part = np.where(some & (covered > 0), 1 / np.where(covered > 0, covered, 1.0), 0.0)[self.pair_class]
        item, of = self.pair_item, self.pair_class
        if self.asked is not None:
            item = self.place[item]
            item, of, part = item[item >= 0], of[item >= 0], part[item >= 0]
        lines = self.items if self.asked is None else len(self.asked)
        return np.asarray(csr_array((part, (item, of)), shape=(lines, self.classes)) @ self.counts)

    @cached_property
    def sole(self) -> NDArray[np.int64]:
        """The one class that covers every item; -1 where none or several do."""
        times = np.bincount(self.pair_item, minlength=self.items)
        out = np.full(self.items, -1, np.int64)
        out[self.pair_item] = self.pair_class
        return np.where(times == 1, out, -1)

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """The classes whose members are all known."""
        mine = self.sole
        held = np.bincount(mine[mine >= 0], self.people[mine >= 0], minlength=self.classes)
        return np.asarray(held == self.sizes)

    @cached_property
    def whole(self) -> bool:
        """Whether every secret is published as it is."""
        return bool(np.abs(self.counts - np.rint(self.counts)).max(initial=0.0) < 1e-9)

    # ------------------------------------------------------------------ what is required

    def fine(self, counts: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which histograms (some, values) of classes would meet everything that is required of the secret."""
        out = np.ones(len(counts), bool)
        step = max(1, AT_ONCE // max(1, self.d))
        for begin in range(0, len(counts), step):
            out[begin : begin + step] = judged(counts[begin : begin + step], self.models, self.secret, self.overall)
        return out


def judged(
    counts: NDArray, models: Sequence[ClassModel], secret: Statement, overall: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Which histograms (classes, values) meet all requirements; an empty one meets none."""
    row, value = np.nonzero(counts)
    starts = np.searchsorted(row, np.arange(len(counts) + 1))
    there = np.flatnonzero(np.diff(starts))
    sizes = np.rint(counts.sum(axis=1)).astype(np.int64)
    part = Histograms(
        sizes[there], np.append(starts[there], len(row)), value.astype(np.int64), counts[row, value].astype(float)
    )
    out = np.zeros(len(counts), bool)
    if len(there):
        good = np.ones(len(there), bool)
        for model in models:
            with np.errstate(divide="ignore", invalid="ignore"):  # a class may be tried with a value that nobody has
                good &= np.asarray(model.judged(part, secret, overall)[1])
        out[there] = good
    return out


def _published_classes(published: Published, secret: Statement) -> tuple[list[Statement], Any, NDArray[np.int64]]:
    """The columns that find people, their cells and the secret's, and the class of every row."""
    quasi = [one for one in published.statements if one.role in QUASI and one.name != secret.name]
    cells = published.cells([*(one.name for one in quasi), secret.name])
    kinds = [cells[one.name].distinct()[1] for one in quasi]
    return quasi, cells, row_numbers(kinds, [int(kind.max(initial=0)) + 1 for kind in kinds], published.rows)


def largest_share(published: Published, name: str) -> float:
    """The largest share of a value in any class."""
    secret = published.column(name)
    _, cells, row_class = _published_classes(published, secret)
    counts = counted(secret, cells[name], row_class, int(row_class.max(initial=-1)) + 1)
    return float((counts.max(axis=1) / counts.sum(axis=1)).max(initial=0.0))


def _beside(columns: Sequence[NDArray], lines: int) -> NDArray:
    return np.stack(columns, axis=1) if columns else np.empty((lines, 0), np.int64)


def placed(table: Records, statement: Statement) -> NDArray[np.int64]:
    """The published code of every value of a column; -1 for one that the release does not list."""
    index = statement.domain.index
    return np.array([index.get(value, -1) for value in table.columns[statement.name].domain.values], np.int64)


def counted(secret: Statement, cells: Any, row_class: NDArray[np.int64], classes: int) -> NDArray[np.float64]:
    """(classes, values): what the rows of every class have; a general value is divided among those under it."""
    from scipy.sparse import csr_array

    distinct, kind = cells.distinct()
    found = secret.likelihood(distinct)
    assert found is not None, "a secret of listed values"
    rows = found.listed(secret.d)
    told = csr_array((rows.weight, rows.value, rows.bounds), shape=(len(rows), secret.d))
    told = told / told.sum(axis=1)[:, None]
    held = csr_array((np.ones(len(kind)), (row_class, kind)), shape=(classes, len(rows)))
    out = held @ told
    return np.asarray(out.toarray() if hasattr(out, "toarray") else out)


def normal(weight: NDArray[np.float64], instead: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows as distributions; those without weight become another."""
    total = weight.sum(axis=1, keepdims=True)
    return np.asarray(np.where(total > 0, weight / np.where(total > 0, total, 1.0), instead))
