"""Spreading over reported groups, and hard bounds that assume nothing.

A record certainly lies in a reported cell if on every axis all it may be is reported there, possibly if some of it is.
For anatomised columns the group's own histogram says more: of a group with s records, a of them in the reported
group, r of which meet the other axes, at least r + a - s and at most min(r, a) lie in the cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noren.analysis.coarse_cells import Links, Packed, Reading, distinct, joined, sizes_of
from noren.errors import QueryError

WORK_LIMIT = 2e10
"""Most additions for one spreading."""


@dataclass(frozen=True)
class Report:
    """An axis as seen from its reported groups: codes that mean one group are that group, others follow.

    `links` lead to the groups a code may be, weighted by spreading. Entries are `sure` if the code means nothing
    else; `room` of the code's records have the entry's group and `slack` have not (no limit for nodes).
    """

    codes: NDArray[np.int64]
    links: Links
    sure: NDArray[np.float64]
    room: NDArray[np.float64]
    slack: NDArray[np.float64]
    groups: int
    is_limited: bool

    @classmethod
    def of(cls, reading: Reading) -> Report:
        from noren.kernels.coarse import condense

        axis, links = reading.axis, reading.links
        size, mass = links.weight * reading.size[links.index], links.weight * reading.mass[links.index]
        codes = len(links.bounds) - 1
        whole = np.bincount(links.owner, size, minlength=codes)
        weighed = np.bincount(links.owner, mass, minlength=codes)
        bounds, index, size, mass = condense(links.bounds, links.index, size, mass, reading.reported, axis.n_groups)
        owner = np.repeat(np.arange(codes), np.diff(bounds))
        share = np.where(weighed[owner] > 0, mass / np.where(weighed > 0, weighed, 1.0)[owner], size / whole[owner])
        one = np.diff(bounds) == 1
        certain = np.full(codes, -1, np.int64)
        certain[one] = np.where(size[bounds[:-1][one]] == whole[one], index[bounds[:-1][one]], -1)
        open_codes = np.flatnonzero((np.diff(bounds) > 0) & (certain < 0))
        renamed = certain.copy()
        renamed[open_codes] = axis.n_groups + np.arange(len(open_codes))

        kept = certain[owner] < 0
        lengths = np.concatenate([np.ones(axis.n_groups, np.int64), np.diff(bounds)[open_codes]])
        each, ones = np.arange(axis.n_groups), np.ones(axis.n_groups)
        out = Links(
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            np.concatenate([each, index[kept]]),
            np.concatenate([ones, share[kept]]),
        )
        limited = axis.groups is not None and len(open_codes) > 0
        room = size[kept] if limited else np.full(int(kept.sum()), np.inf)
        slack = (whole[owner] - size)[kept] if limited else np.zeros(int(kept.sum()))
        return cls(
            renamed[reading.codes],
            out,
            np.concatenate([ones, np.zeros(int(kept.sum()))]),
            np.concatenate([np.full(axis.n_groups, np.inf), room]),
            np.concatenate([np.zeros(axis.n_groups), slack]),
            axis.n_groups,
            limited,
        )


@dataclass(frozen=True)
class Rows:
    """The records that may count, as distinct rows of the reports' codes with how often each occurs."""

    reports: Sequence[Report]
    ids: NDArray[np.int64]
    counts: NDArray[np.float64]

    @classmethod
    def of(cls, reports: Sequence[Report]) -> Rows:
        counted = np.logical_and.reduce([report.codes >= 0 for report in reports])
        rows = cls(reports, *distinct([report.codes[counted] for report in reports], int(counted.sum())))
        lengths = [report.links.lengths[rows.ids[:, j]].astype(np.float64) for j, report in enumerate(reports)]
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
        from noren.kernels.coarse import add_products

        links = [report.links for report in self.reports]
        packed, out = Packed.of(links), np.zeros(int(np.prod(self.shape)))
        weight = joined([link.weight for link in links])
        sizes = sizes_of(self.shape)
        add_products(self.ids, self.counts, packed.ptr, packed.first, packed.index, weight, sizes, out)
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
        from noren.kernels.coarse import bound_counts

        others = [j for j in axes if j != by]
        shape = [self.reports[j].groups for j in others]
        packed = Packed.of([self.reports[j].links for j in others])
        sure = joined([self.reports[j].sure for j in others])
        if by is None:
            order, group, groups = np.arange(len(self.ids)), np.zeros(len(self.ids), np.int64), 1
            rows, where, room, slack = np.array([0, 1]), np.array([0]), np.array([np.inf]), np.array([0.0])
        else:
            order = np.argsort(self.ids[:, by], kind="stable")
            report = self.reports[by]
            group, groups = self.ids[order, by], report.groups
            rows, where, room, slack = report.links.bounds, report.links.index, report.room, report.slack
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
