"""What the cells of any column say, as sparse rows: a column's codes as lists of the base values they leave possible.

Base values that no published cell tells apart are handled together, as segments of neighbouring codes, so that
intervals over thousands of values stay small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noren import ragged
from noren.errors import QueryError
from noren.estimates.counts.axes import AGAIN, Axis
from noren.schema.nodes import Nodes
from noren.statements import GroupTable, Likelihood

ENTRY_LIMIT = 100_000_000
"""Most (code, segment) pairs of one column that are listed."""


@dataclass(frozen=True)
class PackedRows:
    """The rows of several axes in one piece, as the kernels want them."""

    ptr: NDArray[np.int64]
    first: NDArray[np.int64]
    index: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Sequence[Likelihood]) -> PackedRows:
        entries = np.cumsum([0, *(len(each.value) for each in rows)])
        ptr = [each.bounds + at for each, at in zip(rows, entries, strict=False)]
        first = np.cumsum([0, *(len(each.bounds) for each in rows)])
        index = [each.value for each in rows]
        empty = np.zeros(0, np.int64)
        return cls(np.concatenate([empty, *ptr]), first, np.concatenate([empty, *index]))


def joined(parts: Sequence[NDArray]) -> NDArray[np.float64]:
    """One weight per entry of packed rows."""
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
    return ragged.row_numbers(columns, [int(column.max(initial=0)) + 1 for column in columns], n)


def distinct_rows(columns: Sequence[NDArray], n: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The different rows of some code columns, ascending, and how often each occurs."""
    numbered = row_numbers(columns, n)
    counts = np.bincount(numbered).astype(np.float64)
    first = np.zeros(len(counts), np.int64)
    first[numbered] = np.arange(n)
    rows = [np.asarray(column, np.int64)[first] for column in columns]
    return np.stack(rows, axis=1) if rows else np.zeros((len(counts), 0), np.int64), counts


@dataclass(frozen=True)
class Reading:
    """An axis as its cells read: each record's code among those that occur, and what every code says of the segments.

    A segment is some base values; `reported` is their group, `size` their number, `mass` their weight. `rows` hold
    P(code | segment) up to a factor; `held` how many of a group's records have each value, where cells name groups.
    """

    axis: Axis
    codes: NDArray[np.int32]
    rows: Likelihood
    reported: NDArray[np.int64]
    size: NDArray[np.float64]
    mass: NDArray[np.float64]
    held: NDArray[np.int64] | None = None
    required: NDArray[np.bool_] | None = None
    """Of every entry of the rows whether each class under that code has a record there, where that is known."""
    fitted: NDArray[np.float64] | None = None
    """How many records are estimated in every segment, where the rows rest on that."""
    laws: Mapping[str, float] | None = None
    """How much each law of `class_laws` counts in that."""

    @classmethod
    def of(cls, axis: Axis) -> Reading:
        statement, (cells, codes), group_of = axis.statement, axis.distinct, axis.grouping.of
        if axis.is_exact:
            values = np.zeros(len(cells), np.int64) if axis.d == 1 else axis.rows.possible(axis.d)[1]
            each, ones = np.arange(len(cells) + 1), np.ones(len(cells))
            return cls(axis, codes, Likelihood(each, each[:-1], ones), group_of[values], ones, ones)
        if statement.nodes is not None:
            rows, reported, size, mass, required = _segments(axis, statement.nodes, statement.key(cells))
            return cls(axis, codes, rows, reported, size, mass, required=required)
        ones = np.ones(axis.d)
        if statement.table is not None:
            held = _held(axis, statement.table, statement.key(cells), codes)
            return cls(axis, codes, axis.rows, group_of, ones, ones, held)
        mass = ones if axis.weights is None else np.asarray(axis.weights, np.float64)
        return cls(axis, codes, _drawn_rows(axis), group_of, ones, mass)


def _held(axis: Axis, table: GroupTable, groups: NDArray[np.int64], codes: NDArray) -> NDArray[np.int64]:
    """How many of its records have the value, for every entry of the groups' rows."""
    if np.any(np.bincount(codes, minlength=len(groups)) > table.sizes[groups]):
        raise QueryError(f"Some groups of {axis.name!r} have more records than values in their table.", hint=AGAIN)
    return table.count[table.rows(groups)[0]]


def _drawn_rows(axis: Axis) -> Likelihood:
    """The rows of drawn cells without members that cannot be true, the likeliest put at 1."""
    rows = axis.rows
    top = float(rows.weight.max(initial=0.0)) or 1.0
    kept = rows.weight > 0
    bounds = np.concatenate([[0], np.cumsum(kept)])[rows.bounds]
    if rows.floor == 0 and np.any(np.diff(bounds) == 0):
        raise QueryError(f"Some sets of {axis.name!r} cannot come from its design.", hint=AGAIN)
    return Likelihood(bounds, rows.value[kept], rows.weight[kept] / top, rows.floor / top)


def _segments(
    axis: Axis, nodes: Nodes, occurring: NDArray[np.int64]
) -> tuple[Likelihood, NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_] | None]:
    """Cut the base values wherever an occurring node begins or ends, or the reported group changes, and around every
    value that certainly occurs."""
    group_of = axis.grouping.of
    runs, run_bounds = ranges(nodes.bounds[occurring], nodes.bounds[occurring + 1])
    starts, stops = nodes.starts[runs], nodes.stops[runs]
    certain, owner = _certain(axis, run_bounds, starts, stops)
    around = (certain, certain + 1)
    marks = [np.array([0, axis.d]), starts, stops, *around, np.flatnonzero(np.diff(group_of)) + 1]
    edges = ragged.different(np.concatenate(marks))
    first, last = np.searchsorted(edges, starts), np.searchsorted(edges, stops)
    if (last - first).sum() > ENTRY_LIMIT:
        raise QueryError(
            f"The general values of {axis.name!r} stand for {int((last - first).sum()):,} values in total.",
            hint="Ask for this column at a higher level or in wider intervals.",
        )
    index, offsets = ranges(first, last)
    rows = Likelihood(offsets[run_bounds], index, np.ones(len(index)))
    size = np.diff(edges).astype(np.float64)
    if axis.statement.domain.widths is not None:
        size = np.add.reduceat(axis.statement.domain.widths, edges[:-1])
    mass = size
    if axis.weights is not None:
        mass = np.add.reduceat(np.asarray(axis.weights, np.float64), edges[:-1])
    required = None
    if axis.is_tight:
        entries = np.repeat(np.arange(len(rows)), rows.lengths) * np.int64(len(size)) + rows.value
        required = ragged.among(entries, owner * np.int64(len(size)) + np.searchsorted(edges, certain))
        _demand_room(axis, np.add.reduceat(required, rows.bounds[:-1], dtype=np.int64))
    return rows, group_of[edges[:-1]], size, mass, required


def _demand_room(axis: Axis, occurring: NDArray[np.int64]) -> None:
    """Refuse classes of fewer records than values that certainly occur in them."""
    assert axis.classes is not None
    if np.any(axis.classes.sizes[axis.classes.of] < occurring[axis.distinct[1]]):
        raise QueryError(f"Some classes of {axis.name!r} have fewer records than values they say occur.", hint=AGAIN)


def _certain(
    axis: Axis, bounds: NDArray[np.int64], starts: NDArray[np.int64], stops: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The base values that occur in every class of a node, and the node of each."""
    owner = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    if not axis.is_tight:
        return starts[:0], owner[:0]
    if axis.statement.tightness == "members":
        values, offsets = ranges(starts, stops)
        return values, np.repeat(owner, np.diff(offsets))
    ends = [(starts, owner), (stops - 1, owner)]
    gone = axis.statement.domain.missing_code
    if gone is not None:  # a missing value follows the others: where it is named, the interval ends before it
        touched = (stops == gone + 1) & (starts < gone)
        ends.append((np.full(int(touched.sum()), gone - 1, np.int64), owner[touched]))
    return np.concatenate([values for values, _ in ends]), np.concatenate([nodes for _, nodes in ends])
