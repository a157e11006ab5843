"""What coarse cells say: a column's codes as lists of the base values they stand for.

Base values that no published cell tells apart are handled together, as segments of neighbouring codes, so that
intervals over thousands of values stay small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from noren.analysis.axes import number
from noren.cells.general import GroupTable
from noren.errors import QueryError
from noren.schema.nodes import Nodes

ENTRY_LIMIT = 100_000_000
"""Most (code, segment) pairs of one column that are listed."""


@dataclass(frozen=True)
class CoarseAxis:
    """One attribute of a cross tabulation: every record's cell, what the cells mean, and how values are reported.

    The codes in `data` are nodes, groups, or (with neither) base values. `group_of` maps a base value to a reported
    group 0..n_groups-1, or to -1 for "not counted"; a condition is an axis whose admitted values all map to group 0.
    `weights` say in which proportion the values under a node are expected; equally often unless given.
    """

    name: str
    data: NDArray
    d: int
    group_of: NDArray[np.int64]
    n_groups: int
    nodes: Nodes | None = None
    groups: GroupTable | None = None
    weights: NDArray | None = None

    def __post_init__(self) -> None:
        if self.nodes is not None and self.groups is not None:
            raise QueryError(
                f"{self.name!r} has both nodes and groups.", hint="Its codes are one or the other; pass that."
            )
        known = self.groups if self.nodes is None else self.nodes
        if known is not None and known.d != self.d:
            raise QueryError(
                f"{self.name!r} has {self.d} values, its catalogue speaks of {known.d}.",
                hint="Pass the catalogue from the release's manifest.",
            )
        reported = np.asarray(self.group_of)
        if reported.shape != (self.d,) or reported.min(initial=0) < -1 or reported.max(initial=-1) >= self.n_groups:
            raise QueryError(
                f"The reported groups of {self.name!r} do not fit its {self.d} values and {self.n_groups} groups.",
                hint="Give one group number, or -1, for every value of the domain.",
            )
        codes = self.d
        if self.nodes is not None:
            codes = len(self.nodes)
        elif self.groups is not None:
            codes = self.groups.groups
        if len(self.data) and (self.data.min() < 0 or self.data.max() >= codes):
            raise QueryError(
                f"Cells of {self.name!r} lie outside its {codes} codes.", hint="Ask the holder for the release again."
            )
        if self.groups is not None and len(self.data):
            held = np.bincount(self.data, minlength=self.groups.groups)
            if np.any(held > self.groups.sizes):
                raise QueryError(
                    f"Some groups of {self.name!r} have more records than values in their table.",
                    hint="Ask the holder for the release again.",
                )
        if self.weights is not None:
            weights = np.asarray(self.weights, np.float64)
            if weights.shape != (self.d,) or not np.isfinite(weights).all() or weights.min(initial=0.0) < 0:
                raise QueryError(
                    f"The weights of {self.name!r} are not {self.d} numbers from 0 up.",
                    hint="Give one weight for every value of the domain.",
                )


@dataclass(frozen=True)
class Links:
    """For every code a list of places with a weight: entries bounds[c] <= e < bounds[c+1] of index and weight."""

    bounds: NDArray[np.int64]
    index: NDArray[np.int64]
    weight: NDArray[np.float64]

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.bounds)

    @cached_property
    def owner(self) -> NDArray[np.int64]:
        """The code of every entry."""
        return np.repeat(np.arange(len(self.bounds) - 1), self.lengths)


@dataclass(frozen=True)
class Packed:
    """The links of several axes in one piece, as the kernels want them."""

    ptr: NDArray[np.int64]
    first: NDArray[np.int64]
    index: NDArray[np.int64]

    @classmethod
    def of(cls, links: Sequence[Links]) -> Packed:
        entries = np.cumsum([0, *(len(link.index) for link in links)])
        ptr = [link.bounds + at for link, at in zip(links, entries, strict=False)]
        first = np.cumsum([0, *(len(link.bounds) for link in links)])
        index = [link.index for link in links]
        empty = np.zeros(0, np.int64)
        return cls(np.concatenate([empty, *ptr]), first, np.concatenate([empty, *index]))


def joined(parts: Sequence[NDArray]) -> NDArray[np.float64]:
    """One weight per entry of packed links."""
    return np.concatenate([np.zeros(0), *parts])


def sizes_of(shape: Sequence[int]) -> NDArray[np.int64]:
    """Cells of the axes from j on, for j = 0..axes."""
    return np.concatenate([np.cumprod(np.array(shape[::-1], np.int64))[::-1], [1]]).astype(np.int64)


def ranges(starts: NDArray[np.int64], stops: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """start, start + 1, ..., stop - 1 of every pair one after the other, and where each pair's begin."""
    lengths = stops - starts
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return np.arange(offsets[-1]) - np.repeat(offsets[:-1] - starts, lengths), offsets


def row_numbers(columns: Sequence[NDArray], n: int) -> NDArray[np.int64]:
    """The number of each row of some code columns among the different rows, which are ascending."""
    key, largest = np.zeros(n, np.int64), 1
    for column in columns:
        size = int(column.max(initial=0)) + 1
        if largest * size >= 1 << 62:
            key = number(key)[1].astype(np.int64)
            largest = int(key.max(initial=0)) + 1
        key, largest = key * size + column, largest * size
    return number(key)[1].astype(np.int64)


def distinct(columns: Sequence[NDArray], n: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The different rows of some code columns, ascending, and how often each occurs."""
    numbered = row_numbers(columns, n)
    counts = np.bincount(numbered).astype(np.float64)
    first = np.zeros(len(counts), np.int64)
    first[numbered] = np.arange(n)
    rows = [np.asarray(column, np.int64)[first] for column in columns]
    return np.stack(rows, axis=1) if rows else np.zeros((len(counts), 0), np.int64), counts


@dataclass(frozen=True)
class Reading:
    """An axis as its cells read: each record's code among those that occur, and the segments every code stands for.

    A segment is some base values; `reported` is their group, `size` their number, `mass` their weight. An entry's own
    weight is the number of the group's records that have this value; 1 for nodes.
    """

    axis: CoarseAxis
    codes: NDArray[np.int64]
    links: Links
    reported: NDArray[np.int64]
    size: NDArray[np.float64]
    mass: NDArray[np.float64]

    @classmethod
    def of(cls, axis: CoarseAxis) -> Reading:
        occurring, codes = (part.astype(np.int64) for part in number(np.asarray(axis.data)))
        group_of = np.asarray(axis.group_of, np.int64)
        if axis.nodes is not None:
            return cls(axis, codes, *_segments(axis, axis.nodes, occurring, group_of))
        if axis.groups is not None:
            table = axis.groups
            rows, bounds = ranges(table.bounds[occurring], table.bounds[occurring + 1])
            links = Links(bounds, table.value[rows], table.count[rows].astype(np.float64))
            return cls(axis, codes, links, group_of, np.ones(axis.d), np.ones(axis.d))
        each, ones = np.arange(len(occurring) + 1), np.ones(len(occurring))
        return cls(axis, codes, Links(each, each[:-1], ones), group_of[occurring], ones, ones)


def _segments(
    axis: CoarseAxis, nodes: Nodes, occurring: NDArray[np.int64], group_of: NDArray[np.int64]
) -> tuple[Links, NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Cut the base values wherever an occurring node begins or ends, or the reported group changes."""
    runs, run_bounds = ranges(nodes.bounds[occurring], nodes.bounds[occurring + 1])
    starts, stops = nodes.starts[runs], nodes.stops[runs]
    edges = np.unique(np.concatenate([[0, axis.d], starts, stops, np.flatnonzero(np.diff(group_of)) + 1]))
    first, last = np.searchsorted(edges, starts), np.searchsorted(edges, stops)
    if (last - first).sum() > ENTRY_LIMIT:
        raise QueryError(
            f"The general values of {axis.name!r} stand for {int((last - first).sum()):,} values in total.",
            hint="Ask for this column at a higher level or in wider intervals.",
        )
    index, offsets = ranges(first, last)
    links = Links(offsets[run_bounds], index, np.ones(len(index)))
    size = np.diff(edges).astype(np.float64)
    mass = size
    if axis.weights is not None:
        mass = np.add.reduceat(np.asarray(axis.weights, np.float64), edges[:-1])
    return links, group_of[edges[:-1]], size, mass
