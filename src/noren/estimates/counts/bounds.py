"""Spreading over reported groups, and hard bounds without assumptions.

A record certainly lies in a reported cell if on every axis all it may be is reported there, possibly if some of it is.
For anatomised columns the group's own histogram says more: of a group with s records, a of them in the reported
group, r of which meet the other axes, at least r + a - s and at most min(r, a) lie in the cell. Tight classes say the
same with two numbers for a: as many as certainly occur there, and all but those that certainly occur elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError
from noren.estimates.counts.axes import Weights
from noren.estimates.counts.rows import Reading, distinct_rows, ranges, row_numbers, sum_by_label
from noren.estimates.counts.tuples import Products
from noren.ragged import chosen, owners, runs
from noren.statements import Likelihood
from noren.statements.batch import number

WORK_LIMIT = 2e10
"""Most additions for one spreading."""
BLOCK_ENTRIES = 4_000_000
"""Combinations of values that are worked on at once."""


@dataclass(frozen=True)
class ReportedAxis:
    """An axis in terms of its reported groups: a code that determines a group is that group, others follow.

    `rows` lead to the groups a code may be, weighted by spreading. Entries are `sure` if the code means nothing
    else; `room` of the code's records have the entry's group and `slack` have not (no limit for nodes).
    """

    codes: NDArray[np.int64]
    rows: Likelihood
    sure: NDArray[np.float64]
    room: NDArray[np.float64]
    slack: NDArray[np.float64]
    groups: int
    is_limited: bool

    @classmethod
    def of(cls, reading: Reading, alone: bool = False) -> ReportedAxis:
        """Make the axis; `alone` if no other axis is requested, so that classes can be added up."""
        groups = reading.axis.size
        bounds, value, size, mass = _possible(reading)
        codes = len(bounds) - 1
        owner = np.repeat(np.arange(codes), np.diff(bounds))
        whole = np.bincount(owner, size, minlength=codes)
        weighed = np.bincount(owner, mass, minlength=codes)
        bounds, index, (size, mass) = sum_by_label(bounds, value, reading.reported, groups, size, mass)
        owner = np.repeat(np.arange(codes), np.diff(bounds))
        share = np.where(weighed[owner] > 0, mass / np.where(weighed > 0, weighed, 1.0)[owner], size / whole[owner])
        one = np.diff(bounds) == 1
        certain = np.full(codes, -1, np.int64)
        certain[one] = np.where(size[bounds[:-1][one]] == whole[one], index[bounds[:-1][one]], -1)
        open_codes = np.flatnonzero((np.diff(bounds) > 0) & (certain < 0))
        renamed = certain.copy()
        renamed[open_codes] = groups + np.arange(len(open_codes))

        kept = certain[owner] < 0
        lengths = np.concatenate([np.ones(groups, np.int64), np.diff(bounds)[open_codes]])
        each, ones = np.arange(groups), np.ones(groups)
        rows = Likelihood(
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            np.concatenate([each, index[kept]]),
            np.concatenate([ones, share[kept]]),
        )
        limited = reading.held is not None and len(open_codes) > 0
        if reading.required is not None and len(open_codes) > 0:
            return cls._of_classes(reading, renamed, rows, groups, alone)
        room = size[kept] if limited else np.full(int(kept.sum()), np.inf)
        slack = (whole[owner] - size)[kept] if limited else np.zeros(int(kept.sum()))
        return cls(
            renamed[reading.codes],
            rows,
            np.concatenate([ones, np.zeros(int(kept.sum()))]),
            np.concatenate([np.full(groups, np.inf), room]),
            np.concatenate([np.zeros(groups), slack]),
            groups,
            limited,
        )

    @classmethod
    def _of_classes(
        cls, reading: Reading, code: NDArray[np.int64], rows: Likelihood, groups: int, alone: bool
    ) -> ReportedAxis:
        """Return the axis with a code for every class whose generalised value leaves the group open.

        Where it is alone and no condition took records out of their classes, all of every class are asked for: what is
        said of the classes of one generalised value then adds up, and a code for that value is enough.
        """
        classes = reading.axis.classes
        assert classes is not None
        assert reading.required is not None
        count, bare = reading.required.astype(np.float64), reading.rows
        bounds, _, (occurs,) = sum_by_label(bare.bounds, bare.value, reading.reported, groups, count)
        owner = np.repeat(np.arange(len(bare)), np.diff(bounds))
        everywhere = np.bincount(np.repeat(np.arange(len(bare)), bare.lengths), count, minlength=len(bare))
        node = code[reading.codes]
        is_open = node >= groups
        if alone and np.array_equal(np.bincount(classes.of, minlength=len(classes.sizes)), classes.sizes):
            first = np.arange(groups, len(rows))
            of_class = np.zeros(len(classes.sizes), np.int64)
            of_class[classes.of] = node
            held = np.bincount(of_class[of_class >= groups] - groups, minlength=len(first)).astype(np.float64)
            records = np.bincount(node[is_open] - groups, minlength=len(first))
        else:
            found, of = number(classes.of[is_open])
            first = np.zeros(len(found), np.int64)
            first[of] = node[is_open]
            node[is_open] = groups + of
            held, records = np.ones(len(found)), classes.sizes[found]
        entry, offsets = ranges(rows.bounds[first], rows.bounds[first + 1])
        kept = code[owner] >= groups  # in the order of the open codes' rows, which follow those of the groups
        occurs, everywhere = occurs[kept], everywhere[owner][kept]
        size, held = (np.repeat(each, np.diff(offsets)).astype(np.float64) for each in (records, held))
        each = np.arange(groups)
        return cls(
            node,
            Likelihood(
                np.concatenate([np.arange(groups), groups + offsets]),
                np.concatenate([each, rows.value[entry]]),
                np.concatenate([np.ones(groups), rows.weight[entry]]),
            ),
            np.concatenate([np.ones(groups), np.zeros(len(entry))]),
            np.concatenate([np.full(groups, np.inf), size - held * (everywhere - occurs)[entry - groups]]),
            np.concatenate([np.zeros(groups), size - held * occurs[entry - groups]]),
            groups,
            True,
        )


def _possible(reading: Reading) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray, NDArray]:
    """Return the possible groups of every code, with their base values and weights."""
    rows = reading.rows
    if rows.floor > 0:  # any value can be true
        d, codes = len(reading.size), len(rows)
        weight = rows.dense(d) * reading.mass
        return np.arange(codes + 1) * d, np.tile(np.arange(d), codes), np.tile(reading.size, codes), weight.ravel()
    if reading.held is not None:
        held = reading.held.astype(np.float64)
        return rows.bounds, rows.value, held, held
    return rows.bounds, rows.value, reading.size[rows.value], rows.weight * reading.mass[rows.value]


@dataclass(frozen=True)
class ReportedRows:
    """The records that may count, as distinct rows of codes with their counts."""

    reports: Sequence[ReportedAxis]
    ids: NDArray[np.int64]
    counts: NDArray[np.float64]

    @classmethod
    def of(cls, reports: Sequence[ReportedAxis], weights: Weights | None = None) -> ReportedRows:
        counted = np.logical_and.reduce([report.codes >= 0 for report in reports])
        columns, n = [report.codes[counted] for report in reports], int(counted.sum())
        ids, counts = distinct_rows(columns, n)
        if weights is not None:  # a group's table and a class count records, which says nothing of their weights
            counts = np.bincount(row_numbers(columns, n), weights.of[counted], len(ids)).astype(np.float64)
            reports = [replace(report, is_limited=False) for report in reports]
        rows = cls(reports, ids, counts)
        lengths = [report.rows.lengths[rows.ids[:, j]].astype(np.float64) for j, report in enumerate(reports)]
        if (work := float(np.prod(lengths, axis=0).sum())) > WORK_LIMIT:
            raise QueryError(
                f"The published cells allow {work:.1e} combinations of the requested values, which are too many.",
                hint="Ask for fewer columns, higher levels or wider intervals.",
            )
        return rows

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(report.groups for report in self.reports)

    def spread(self) -> NDArray[np.float64]:
        """Spread every record over its possible groups, independently across the axes."""
        return (
            Products(self.ids, [each.rows for each in self.reports], self.shape)
            .scatter(self.counts)
            .reshape(self.shape)
        )

    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the smallest and largest number of records of every reported cell.

        With several anatomised axes each gives bounds in which the others count by their possible values only, and
        together they give Bonferroni's: of the records that fit, no more can miss than miss on one axis each.
        """
        every = list(range(len(self.reports)))
        limited = [j for j in every if self.reports[j].is_limited]
        least, most = self._bounds(every, limited[0] if limited else None)
        for j in limited[1:]:
            lower, upper = self._bounds(every, j)
            least, most = np.maximum(least, lower), np.minimum(most, upper)
        if len(limited) > 1:
            free = [j for j in every if j not in limited]
            met = (1 - len(limited)) * self._bounds(free, None)[0]
            for j in limited:
                met = met + self._bounds(sorted([*free, j]), j)[0]
            least = np.maximum(least, met)
        return least, most

    def _bounds(self, axes: list[int], by: int | None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return bounds from some axes; `by` is the axis whose histograms are used, and other axes have length 1."""
        others = [j for j in axes if j != by]
        shape = [self.reports[j].groups for j in others]
        possible = [replace(self.reports[j].rows, weight=np.ones(len(self.reports[j].rows.value))) for j in others]
        sure = [replace(self.reports[j].rows, weight=self.reports[j].sure) for j in others]
        if by is None:
            full = [self.reports[j].groups if j in axes else 1 for j in range(len(self.reports))]
            least, most = (
                Products(self.ids[:, others], rows, shape).scatter(self.counts).reshape(full)
                for rows in (sure, possible)
            )
            return least, most
        report = self.reports[by]
        order = np.argsort(self.ids[:, by], kind="stable")
        ids, counts, code = self.ids[order][:, others], self.counts[order], self.ids[order, by]
        lengths = [rows.lengths[ids[:, i]] for i, rows in enumerate(possible)]
        found = np.zeros((2, report.groups, prod(shape)))
        for block in _blocks(code, np.prod([report.rows.lengths[code], *lengths], axis=0)):
            products = [Products(ids[block], rows, shape, depth=0) for rows in (sure, possible)]
            found += _limited(
                report, code[block], counts[block], *(one.matrices(0, len(one.ids))[0] for one in products)
            )
        place = {j: i + 2 for i, j in enumerate(others)}
        table = found.reshape(2, report.groups, *shape).transpose(
            0, *(1 if j == by else place[j] for j in sorted(axes))
        )
        table = table.reshape(2, *(self.reports[j].groups if j in axes else 1 for j in range(len(self.reports))))
        return table[0], table[1]


def _blocks(code: NDArray[np.int64], sizes: NDArray[np.int64]) -> list[slice]:
    """Split records, in the order of their codes, into blocks of whole codes."""
    ends = runs(code)[1:]
    portion = np.cumsum(sizes)[ends - 1] // BLOCK_ENTRIES
    edges = [0, *ends[runs(portion)[1:] - 1].tolist()]
    return [slice(start, stop) for start, stop in pairwise(edges)]


def _limited(
    report: ReportedAxis, code: NDArray[np.int64], counts: NDArray[np.float64], sure: Any, possible: Any
) -> NDArray[np.float64]:
    """Return a (2, groups, cells) array: the smallest and largest number of records, code by code.

    `sure` and `possible` say in which cells every record must lie and can lie.
    """
    from scipy.sparse import csr_array

    codes, of = np.unique(code, return_inverse=True)
    whole = csr_array((counts, (of, np.arange(len(code)))), (len(codes), len(code)))
    bounds, entries = chosen(report.rows.bounds, codes)
    put = csr_array((np.ones(len(entries)), (report.rows.value[entries], np.arange(len(entries)))),
                    (report.groups, len(entries)))  # fmt: skip
    known, some = ((whole @ matrix)[owners(bounds)] for matrix in (sure, possible))
    known.data = np.maximum(known.data - np.repeat(report.slack[entries], np.diff(known.indptr)), 0.0)
    some.data = np.minimum(some.data, np.repeat(report.room[entries], np.diff(some.indptr)))
    return np.stack([(put @ known).toarray(), (put @ some).toarray()])
