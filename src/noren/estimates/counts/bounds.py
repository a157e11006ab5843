"""Spreading over reported groups, and hard bounds that assume nothing.

A record certainly lies in a reported cell if on every axis all it may be is reported there, possibly if some of it is.
For anatomised columns the group's own histogram says more: of a group with s records, a of them in the reported
group, r of which meet the other axes, at least r + a - s and at most min(r, a) lie in the cell. Tight classes say the
same with two numbers for a: as many as certainly occur there, and all but those that certainly occur elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError
from noren.estimates.counts.axes import Weights
from noren.estimates.counts.rows import PackedRows, Reading, distinct_rows, joined, ranges, row_numbers, sizes_of
from noren.statements import Likelihood
from noren.statements.batch import number

WORK_LIMIT = 2e10
"""Most additions for one spreading."""


@dataclass(frozen=True)
class ReportedAxis:
    """An axis as seen from its reported groups: codes that mean one group are that group, others follow.

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
        """`alone` if no other axis is asked for: what classes say then adds up over those of one general value."""
        from noren.estimates.counts.kernels.coarse import condense

        groups = reading.axis.size
        bounds, value, size, mass = _possible(reading)
        codes = len(bounds) - 1
        owner = np.repeat(np.arange(codes), np.diff(bounds))
        whole = np.bincount(owner, size, minlength=codes)
        weighed = np.bincount(owner, mass, minlength=codes)
        bounds, index, size, mass = condense(bounds, value, size, mass, reading.reported, groups)
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
        """The axis with a code for every class whose general value leaves open which group it is.

        Where it is alone and no condition took records out of their classes, all of every class are asked for: what is
        said of the classes of one general value then adds up, and a code for that value is enough.
        """
        from noren.estimates.counts.kernels.coarse import condense

        classes = reading.axis.classes
        assert classes is not None
        assert reading.required is not None
        count, bare = reading.required.astype(np.float64), reading.rows
        bounds, _, occurs, _ = condense(bare.bounds, bare.value, count, count, reading.reported, groups)
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
    """The segments that every code leaves possible: how many base values they are, and what they weigh."""
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
    """The records that may count, as distinct rows of the axes' codes with how often each occurs."""

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
                f"The published cells stand for {work:.1e} combinations of the values asked for.",
                hint="Ask for fewer columns, higher levels or wider intervals.",
            )
        return rows

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(report.groups for report in self.reports)

    def spread(self) -> NDArray[np.float64]:
        """Every record spread over the groups it may lie in, independently across the axes."""
        from noren.estimates.counts.kernels.coarse import add_regions

        rows = [report.rows for report in self.reports]
        packed, out = PackedRows.of(rows), np.zeros(int(np.prod(self.shape)))
        weight = joined([each.weight for each in rows])
        sizes = sizes_of(self.shape)
        add_regions(self.ids, self.counts, packed.ptr, packed.first, packed.index, weight, sizes, out)
        return out.reshape(self.shape)

    def bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Least and most records of every reported cell.

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
        """Bounds from some axes, `by` the one whose histograms are used; the axes left out have length 1."""
        from noren.estimates.counts.kernels.coarse import bound_counts

        others = [j for j in axes if j != by]
        shape = [self.reports[j].groups for j in others]
        packed = PackedRows.of([self.reports[j].rows for j in others])
        sure = joined([self.reports[j].sure for j in others])
        if by is None:
            order, group, groups = np.arange(len(self.ids)), np.zeros(len(self.ids), np.int64), 1
            rows, where, room, slack = np.array([0, 1]), np.array([0]), np.array([np.inf]), np.array([0.0])
        else:
            order = np.argsort(self.ids[:, by], kind="stable")
            report = self.reports[by]
            group, groups = self.ids[order, by], report.groups
            rows, where, room, slack = report.rows.bounds, report.rows.value, report.room, report.slack
        ids, counts = np.ascontiguousarray(self.ids[order][:, others]), self.counts[order]
        sizes = sizes_of(shape)
        least, most = np.zeros(groups * int(sizes[0])), np.zeros(groups * int(sizes[0]))
        bound_counts(
            group,
            ids,
            counts,
            packed.ptr,
            packed.first,
            packed.index,
            sure,
            sizes,
            rows,
            where,
            room,
            slack,
            least,
            most,
        )
        place = {j: i + 1 for i, j in enumerate(others)}
        found = []
        for flat in (least, most):
            table = flat.reshape(groups, *shape)
            if by is None:
                table, full = table[0], [self.reports[j].groups if j in axes else 1 for j in range(len(self.reports))]
                found.append(table.reshape(full))
                continue
            table = table.transpose([0 if j == by else place[j] for j in sorted(axes)])
            found.append(table.reshape([self.reports[j].groups if j in axes else 1 for j in range(len(self.reports))]))
        return found[0], found[1]
