"""The possible values of the cells of any column, as sparse rows over base values.

Base values that no published cell distinguishes are handled together, as segments of neighbouring codes, so that
intervals over thousands of values stay small.

What tight classes say: a class publishes the least generalised value that covers it, so the ends of its interval and
every member of its set occur in it.

Coarsening at random, on which `likelihood` rests, is wrong there. Of a class of n records under a generalised value S
the expected number of records with value v is

    E[N_v | N_r >= 1 for every r that certainly occurs, sum of all N = n],      N_v ~ Poisson(mu q_v) for v in S

with mu such that the expectations add up to n. That is the multinomial's conditional mean but for a term of order 1/n
(a saddle point), at no cost for sets of any size; where as many values occur as there are records, it is exact.

What q is decides everything, and no release tells it. Classes are formed of near records: one that holds two values
lies where they meet and has about as many of the one as of the other, whatever their shares among all; one that holds
many values, or is large, is nearly a sample of all. So q is between even and the estimated shares p, by how many values
m the class covers:

    q_v ~ u_v^a p_v^(1 - a),      a = min(1 / m, n^(-1/3)),      u even over S

p is what the same formula says of all classes with q = u. Going on, with what comes out as the next p, makes the
estimates worse (measured): the more shares are followed, the more they are exaggerated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from noren import ragged
from noren.errors import QueryError
from noren.estimates.counts.axes import AGAIN, Axis
from noren.schema.nodes import Nodes
from noren.statements import GroupTable, Likelihood
from noren.statements.batch import number

ENTRY_LIMIT = 100_000_000
"""Most (code, segment) pairs of one column that are listed."""


def ranges(starts: NDArray[np.int64], stops: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Concatenate start, start + 1, ..., stop - 1 of every pair, and return the offsets."""
    lengths = stops - starts
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return np.arange(offsets[-1]) - np.repeat(offsets[:-1] - starts, lengths), offsets


def row_numbers(columns: Sequence[NDArray], n: int) -> NDArray[np.int64]:
    """Number each row of some code columns among the distinct rows in ascending order."""
    return ragged.row_numbers(columns, [int(column.max(initial=0)) + 1 for column in columns], n)


def distinct_rows(columns: Sequence[NDArray], n: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the distinct rows of some code columns in ascending order, and their counts."""
    numbered = row_numbers(columns, n)
    counts = np.bincount(numbered).astype(np.float64)
    first = np.zeros(len(counts), np.int64)
    first[numbered] = np.arange(n)
    rows = [np.asarray(column, np.int64)[first] for column in columns]
    return np.stack(rows, axis=1) if rows else np.zeros((len(counts), 0), np.int64), counts


def sum_by_label(
    bounds: NDArray[np.int64], value: NDArray[np.int64], label: NDArray[np.int64], labels: int, *weights: NDArray
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[NDArray[np.float64]]]:
    """Sum every row's entries by the label of their value (-1 is dropped): offsets, labels, and sums of weights."""
    label = label[value]
    kept = label >= 0
    owner = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    keys, place = number(owner[kept] * np.int64(labels) + label[kept])
    sums = [np.bincount(place, weight[kept], len(keys)).astype(np.float64) for weight in weights]
    return np.searchsorted(keys, np.arange(len(bounds)) * np.int64(labels)), keys % labels, sums


@dataclass(frozen=True)
class Reading:
    """An axis in terms of its cells: each record's code among those that occur, and the possible segments of every
    code.

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
        return cls(axis, codes, axis.drawn_rows, group_of, ones, mass)


def _held(axis: Axis, table: GroupTable, groups: NDArray[np.int64], codes: NDArray) -> NDArray[np.int64]:
    """Return how many records have the value, for every entry of the groups' rows."""
    if np.any(np.bincount(codes, minlength=len(groups)) > table.sizes[groups]):
        raise QueryError(f"Some groups of {axis.name!r} have more records than values in their table.", hint=AGAIN)
    return table.count[table.rows(groups)[0]]


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
            f"The generalised values of {axis.name!r} allow {int((last - first).sum()):,} values in total, which "
            "are too many.",
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
    """Raise if a class has fewer records than values that certainly occur in it."""
    assert axis.classes is not None
    if np.any(axis.classes.sizes[axis.classes.of] < occurring[axis.distinct[1]]):
        raise QueryError(
            f"Some classes of {axis.name!r} have fewer records than values that must occur in them.", hint=AGAIN
        )


def _certain(
    axis: Axis, bounds: NDArray[np.int64], starts: NDArray[np.int64], stops: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the base values that occur in every class of a node, and the node of each."""
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


def class_aware(reading: Reading) -> Reading:
    """Replace coarsening at random by the information of tight classes: a code for every generalised value and class
    size, whose rows are P(code | segment) if all classes are as expected."""
    classes, required = reading.axis.classes, reading.required
    if classes is None or required is None or not len(reading.codes):
        return reading
    size = classes.sizes[classes.of]
    codes = row_numbers([reading.codes, size], len(size))
    first = np.zeros(int(codes.max()) + 1, np.int64)
    first[codes] = np.arange(len(codes))
    found = _classes(reading, reading.codes[first], size[first], np.bincount(codes))
    segments = len(reading.size)
    even = np.where(reading.mass > 0, reading.mass, LEAST * max(float(reading.mass.max(initial=0.0)), 1.0))
    shares = found.shares(even, found.total(found.shares(even, None), segments))
    fitted = found.total(shares, segments)
    weight = shares / np.maximum(fitted[found.segment], 1e-300)
    weight /= np.maximum(np.maximum.reduceat(weight, found.bounds[:-1]), 1e-300)[found.owner]
    likelihood = Likelihood(found.bounds, found.segment, weight)
    return replace(reading, codes=codes.astype(np.int32), rows=likelihood, required=None, fitted=fitted)


def _classes(reading: Reading, node: NDArray, sizes: NDArray[np.int64], asked: NDArray[np.int64]) -> TightClasses:
    """Return classes of these codes and sizes with the segments that they cover."""
    rows = reading.rows
    assert reading.required is not None
    if rows.lengths[node].sum() > ENTRY_LIMIT:
        raise QueryError(
            f"The classes of {reading.axis.name!r} allow {int(rows.lengths[node].sum()):,} values in total, which "
            "are too many.",
            hint="Ask for this column at a higher level or in wider intervals, or use estimator='spread'.",
        )
    entry, bounds = ranges(rows.bounds[node], rows.bounds[node + 1])
    return TightClasses(
        sizes.astype(np.float64), asked.astype(np.float64), bounds, rows.value[entry], reading.required[entry]
    )


ROUNDS = 60
"""Newton steps at most; a few suffice."""
NEAR = 1e-9
LEAST = 1e-12
"""Share of a value that no class seems to have."""


@dataclass(frozen=True)
class TightClasses:
    """Classes of one size under one generalised value, and their possible segments."""

    sizes: NDArray[np.float64]
    """Records of one such class."""
    asked: NDArray[np.float64]
    """Rows of all such classes that are asked about."""
    bounds: NDArray[np.int64]
    segment: NDArray[np.int64]
    required: NDArray[np.bool_]

    @property
    def owner(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self.sizes)), np.diff(self.bounds))

    def sums(self, parts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum the parts of every class."""
        return np.asarray(np.add.reduceat(parts, self.bounds[:-1])) if len(parts) else np.zeros(0)

    def shares(self, even: NDArray[np.float64], known: NDArray[np.float64] | None) -> NDArray[np.float64]:
        """Return the expected share of each segment in a class, given the expected total counts."""
        owner = self.owner
        weight = even[self.segment] / self.sums(even[self.segment])[owner]
        if known is not None:
            power = np.minimum(1 / self.sums(np.ones(len(self.segment))), self.sizes ** (-1 / 3))[owner]
            part = np.maximum(known[self.segment], LEAST)
            weight = weight**power * (part / self.sums(part)[owner]) ** (1.0 - power)
            weight /= self.sums(weight)[owner]
        expected = self._expected(weight, owner)
        return np.asarray(expected / self.sums(expected)[owner])

    def _expected(self, weight: NDArray[np.float64], owner: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the expected records of every segment, up to a factor for each class."""
        certain = self.sums(self.required.astype(np.float64))
        mean = np.maximum(self.sizes - certain / 2, 1e-6)
        for _ in range(ROUNDS):
            found, slope = truncated(mean[owner] * weight, self.required)
            step = (self.sums(found) - self.sizes) / np.maximum(self.sums(slope * weight), LEAST)
            following = np.maximum(mean - step, mean * 1e-3)
            moved = float(np.abs(following - mean).max(initial=0.0))
            mean = following
            if moved <= NEAR * float(self.sizes.max(initial=1.0)):
                break
        return truncated(mean[owner] * weight, self.required)[0]

    def total(self, shares: NDArray[np.float64], segments: int) -> NDArray[np.float64]:
        """Return the expected number of requested rows in every segment."""
        return np.bincount(self.segment, shares * self.asked[self.owner], minlength=segments).astype(np.float64)


def truncated(mean: NDArray[np.float64], required: NDArray[np.bool_]) -> tuple[NDArray, NDArray]:
    """Return the mean of a Poisson number that is at least 1 if required, and its derivative."""
    some = np.maximum(-np.expm1(-mean), 1e-300)
    small = mean < 1e-4
    value = np.where(small, 1 + mean / 2, mean / some)
    slope = np.where(small, 0.5 + mean / 6, (some - mean * np.exp(-mean)) / some**2)
    return np.where(required, value, mean), np.where(required, slope, 1.0)
