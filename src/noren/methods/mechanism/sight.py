"""The view of an adversary who replays a method: everybody's quasi-identifiers, the published classes, and the possible
members of each.

Whose row is whose is not in it, and no rule looks at anybody's secret.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.engines import Records
from noren.engines.finding import Cover, row_classes
from noren.engines.records import QUASI
from noren.models.class_check import ClassModel
from noren.models.histograms import Histograms
from noren.ragged import offsets_of
from noren.release.published import Published
from noren.statements import Statement

DRAWS = 200
AT_ONCE = 1 << 22
"""Cells of histograms that are judged at once."""


@dataclass(frozen=True)
class Sight(Cover):
    """One secret of a release beside everybody's quasi-identifiers."""

    secret: Statement
    models: Sequence[ClassModel]
    """What is required of the secret in every class."""
    k: int
    counts: NDArray[np.float64]
    """(classes, values): how many rows of every class have every value; a generalised value counts for all under it."""
    means: NDArray[np.float64]
    """(classes, columns): the published means, where columns have such."""
    averaged: tuple[str, ...]
    """The columns that are published as means."""
    draws: int = DRAWS
    """How often the values of a class are handed out at random, where a rule is simulated."""
    parts: dict[int, NDArray[np.int64]] = field(default_factory=dict, repr=False, compare=False)
    """The parts that size alone leads to, by the smallest size."""

    @classmethod
    def of(cls, published: Published, table: Records, secret: Statement, models: Sequence[ClassModel], k: int) -> Sight:
        """Return the view of an adversary who knows everybody in the table."""
        quasi = [one for one in published.statements if one.role in QUASI and one.name != secret.name]
        cover = Cover.find(published, table, quasi)
        averaged = [one for one in quasi if getattr(one, "numbers", None) is not None]
        cells = published.cells([secret.name, *(one.name for one in averaged)])
        means = [one.numbers[one.key(cells[one.name])][cover.first] for one in averaged]  # type: ignore[attr-defined]
        counts = counted(secret, cells[secret.name], cover.row_class, cover.classes)
        beside = np.stack(means, axis=1) if means else np.empty((cover.classes, 0))
        given = {one.name: getattr(cover, one.name) for one in fields(cover)}
        return cls(**given, secret=secret, models=models, k=k, counts=counts, means=beside,
                   averaged=tuple(one.name for one in averaged))  # fmt: skip

    # ------------------------------------------------------------------ items and classes

    @property
    def d(self) -> int:
        return int(self.counts.shape[1])

    @cached_property
    def people(self) -> NDArray[np.int64]:
        """Return the people of every item."""
        return np.bincount(self.item, minlength=self.items)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Return the rows of every class."""
        return np.asarray(np.rint(self.counts.sum(axis=1)).astype(np.int64))

    @cached_property
    def overall(self) -> NDArray[np.float64]:
        """Return the distribution of the secret in the whole release."""
        total = self.counts.sum(axis=0)
        return np.asarray(total / max(1.0, float(total.sum())))

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """Return (classes, values): the distribution in every class."""
        return np.asarray(self.counts / np.maximum(1e-300, self.counts.sum(axis=1, keepdims=True)))

    @cached_property
    def before(self) -> NDArray[np.float64]:
        """Return (items, values): the beliefs from the classes, with each row equally likely anybody's whom it
        covers."""
        pooled = self.pooled(np.ones(self.classes, bool), self.people)
        return normal(pooled, self.overall)

    @cached_property
    def highest(self) -> NDArray[np.float64]:
        """Return the largest share of a value in any class that covers an item."""
        out = np.zeros(self.items)
        np.maximum.at(out, self.pair_item, self.shares.max(axis=1)[self.pair_class])
        return np.where(out > 0, out, self.overall.max())

    def pooled(self, some: NDArray[np.bool_], people: NDArray) -> NDArray[np.float64]:
        """Return (items, values): rows of some classes, each divided among the covered people."""
        from scipy.sparse import csr_array

        covered = np.bincount(self.pair_class, people[self.pair_item], minlength=self.classes)
        part = np.where(some & (covered > 0), 1 / np.where(covered > 0, covered, 1.0), 0.0)[self.pair_class]
        share = csr_array((part, (self.pair_item, self.pair_class)), shape=(self.items, self.classes))
        return np.asarray(share @ self.counts)

    def turns(self, rank: NDArray) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]]:
        """Yield every item's classes one after the other by rank: items, a class of each, and the expected share of its
        rows."""
        covered = np.maximum(1, np.bincount(self.pair_class, self.people[self.pair_item], self.classes))
        order = np.lexsort((rank[self.pair_class], self.pair_item))
        group = self.pair_class[order]
        times = np.bincount(self.pair_item, minlength=self.items)
        begin = offsets_of(times)
        for turn in range(int(times.max(initial=0))):
            who = np.flatnonzero(times > turn)
            mine = group[begin[who] + turn]
            yield who, mine, self.counts[mine] / covered[mine, None]

    @cached_property
    def sole(self) -> NDArray[np.int64]:
        """Return the one class that covers every item; -1 if none or several do."""
        times = np.bincount(self.pair_item, minlength=self.items)
        out = np.full(self.items, -1, np.int64)
        out[self.pair_item] = self.pair_class
        return np.where(times == 1, out, -1)

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """Return the classes whose members are all known."""
        mine = self.sole
        held = np.bincount(mine[mine >= 0], self.people[mine >= 0], minlength=self.classes)
        return np.asarray(held == self.sizes)

    @cached_property
    def whole(self) -> bool:
        """Return whether every secret is published exactly."""
        return bool(np.abs(self.counts - np.rint(self.counts)).max(initial=0.0) < 1e-9)

    # ------------------------------------------------------------------ what is required

    def fine(self, counts: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which histograms (some, values) of classes would meet all requirements on the secret."""
        out = np.ones(len(counts), bool)
        step = max(1, AT_ONCE // max(1, self.d))
        for begin in range(0, len(counts), step):
            out[begin : begin + step] = judged(counts[begin : begin + step], self.models, self.secret, self.overall)
        return out


def judged(
    counts: NDArray, models: Sequence[ClassModel], secret: Statement, overall: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return which histograms (classes, values) meet all requirements; an empty one meets none."""
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
                good &= np.asarray(model.judge_histograms(part, secret, overall)[1])
        out[there] = good
    return out


def largest_share(published: Published, name: str) -> float:
    """Return the largest share of a value in any class."""
    secret = published.column(name)
    row_class = row_classes(published, [one for one in published.statements if one.role in QUASI and one.name != name])
    counts = counted(secret, published.cells([name])[name], row_class, int(row_class.max(initial=-1)) + 1)
    return float((counts.max(axis=1) / counts.sum(axis=1)).max(initial=0.0))


def counted(secret: Statement, cells: Any, row_class: NDArray[np.int64], classes: int) -> NDArray[np.float64]:
    """Return (classes, values): the counts in every class; a generalised value is divided among those under it."""
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
    """Normalise rows to distributions; rows without weight become another."""
    total = weight.sum(axis=1, keepdims=True)
    return np.asarray(np.where(total > 0, weight / np.where(total > 0, total, 1.0), instead))
