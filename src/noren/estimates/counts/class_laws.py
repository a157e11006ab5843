"""How the records of a tight class lie between what certainly occurs: three laws, and how much each counts.

| law | what it says of a class's other records |
| --- | --- |
| even | evenly spread over what the class covers |
| between | between evenly spread and spread as all are (`tight`) |
| at random | spread as all are, and what occurs says nothing (`likelihood`) |

No release tells which is right, but it shows what happens on the way to it. Two neighbouring classes put together are
what the method would have published for a larger k, and the two tell far more of it than it would tell itself. So
neighbours are merged, each law estimates every merged class, and its distance from what the single classes say (by
`even` and by `between`) is its error D one step further than where it is needed. The laws are mixed by D^-POWER.

Neighbours are found as Mondrian finds classes: the classes' centres are halved along the widest column, until two or
three are left.

What tight classes say: a class publishes the least general value that covers it, so the ends of its interval and
every member of its set occur in it.

Coarsening at random, on which `likelihood` rests, is wrong there. Of a class of n records under a general value S the
expected number of records with value v is

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

That is right for columns of people and wrong for others: for some, classes are even whatever the shares are, for a few
coarsening at random is less wrong. How much each of the three laws counts is judged by `class_laws`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError
from noren.estimates.counts.axes import Axis, Classes
from noren.estimates.counts.fit import ascend
from noren.estimates.counts.rows import ENTRY_LIMIT, Reading, ranges, row_numbers
from noren.statements import CodeCells, Likelihood

LAWS = ("even", "between", "at random")
ALONE = np.array([0.0, 1.0, 0.0])
"""What counts where classes have no neighbours."""
POWER = 16
"""How sharply the laws are told apart by their errors; a power of infinity would choose one."""
ENTRIES = 400_000
"""Values under all classes that are merged; of more classes some are taken."""
LITTLE = 0.01
"""Part below which a law is left out."""


def class_aware(reading: Reading) -> Reading:
    """The reading with what tight classes say in place of coarsening at random: a code for every general value of
    classes of one size, rows that are P(code | segment) where all classes are as expected."""
    classes, required = reading.axis.classes, reading.required
    if classes is None or required is None or not len(reading.codes):
        return reading
    size = classes.sizes[classes.of]
    codes = row_numbers([reading.codes, size], len(size))
    first = np.zeros(int(codes.max()) + 1, np.int64)
    first[codes] = np.arange(len(codes))
    found = _classes(reading, reading.codes[first], size[first], np.bincount(codes))
    segments = len(reading.size)
    parts = law_parts(reading.axis)
    shares = found_shares(found, _even(reading), parts)
    fitted = found.total(shares, segments)
    weight = shares / np.maximum(fitted[found.segment], 1e-300)
    weight /= np.maximum(np.maximum.reduceat(weight, found.bounds[:-1]), 1e-300)[found.owner]
    likelihood = Likelihood(found.bounds, found.segment, weight)
    laws = {law: round(float(part), 3) for law, part in zip(LAWS, parts, strict=True)}
    return replace(reading, codes=codes.astype(np.int32), rows=likelihood, required=None, fitted=fitted, laws=laws)


def found_shares(classes: TightClasses, even: NDArray[np.float64], parts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Which share of a class each of its segments is expected to have: the laws' mean, weighted by their parts."""
    found = classes.shares(even, None)
    known = classes.total(found, len(even))
    out = parts[0] * found
    if parts[1]:
        out = out + parts[1] * classes.shares(even, known)
    if parts[2]:
        out = out + parts[2] * classes.at_random(even)
    return np.asarray(out)


def law_parts(axis: Axis) -> NDArray[np.float64]:
    """How much each law counts for a column, by what its classes show when neighbours are merged."""
    classes, nodes = axis.classes, axis.statement.nodes
    codes = None if classes is None else classes.nodes.get(axis.statement.name)
    if classes is None or nodes is None or codes is None or len(codes) < 4:
        return ALONE
    single = Axis(
        axis.name, axis.statement, CodeCells(len(nodes), codes), np.zeros(axis.d, np.int64), 1, axis.weights,
        Classes(np.arange(len(codes)), classes.sizes),
    )  # fmt: skip
    reading = Reading.of(single)
    lengths = reading.rows.lengths[reading.codes]
    group = neighbours(np.stack(list(classes.points.values()), axis=1))
    every = -(-int(lengths.sum()) // ENTRIES)
    kept = np.flatnonzero(group % every == 0)
    group = np.unique(group[kept], return_inverse=True)[1]
    fine = _classes(reading, reading.codes[kept], classes.sizes[kept], classes.sizes[kept])
    errors = merging_errors(fine, group, _even(reading), _hull(reading))
    parts = (np.maximum(errors, 1e-12) / max(float(errors.min()), 1e-12)) ** -POWER
    parts[parts < LITTLE * parts.sum()] = 0.0
    return np.asarray(parts / parts.sum())


def merging_errors(
    fine: TightClasses, group: NDArray[np.int64], even: NDArray[np.float64], hull: NDArray[np.bool_] | None
) -> NDArray[np.float64]:
    """Distance of each law's estimate of merged classes from what the single ones say, in records."""
    segments = len(even)
    whole = merged(fine, group, segments, hull)
    each = np.eye(len(LAWS))
    place = np.searchsorted(
        whole.owner * np.int64(segments) + whole.segment, group[fine.owner] * np.int64(segments) + fine.segment
    )
    told = [
        np.bincount(place, found_shares(fine, even, law) * fine.sizes[fine.owner], minlength=len(whole.segment))
        for law in each[:2]
    ]
    size = whole.sizes[whole.owner]
    return np.array(
        [sum(float(np.abs(found_shares(whole, even, law) * size - one).sum()) for one in told) for law in each]
    )


def merged(fine: TightClasses, group: NDArray[np.int64], segments: int, hull: NDArray[np.bool_] | None) -> TightClasses:
    """What every group of classes would have published as one: the members of all, or the interval that covers them,
    where `hull` says which segments belong to intervals (not a missing value)."""
    count = int(group.max()) + 1
    sizes = np.bincount(group, fine.sizes, minlength=count).astype(np.float64)
    owner = group[fine.owner].astype(np.int64)
    keys = np.unique(owner * segments + fine.segment)
    if hull is None:
        required = np.ones(len(keys), np.bool_)
    else:
        inside = hull[fine.segment]
        low, high = np.full(count, segments), np.full(count, -1)
        np.minimum.at(low, owner[inside], fine.segment[inside])
        np.maximum.at(high, owner[inside], fine.segment[inside])
        between, bounds = ranges(low, np.maximum(high + 1, low))
        within = np.repeat(np.arange(count), np.diff(bounds)) * segments + between
        keys = np.unique(np.concatenate([keys, within[hull[between]]]))
        at, of = keys % segments, keys // segments
        required = (at == low[of]) | (at == high[of]) | ~hull[at]
    bounds = np.concatenate([[0], np.cumsum(np.bincount(keys // segments, minlength=count))]).astype(np.int64)
    return TightClasses(sizes, sizes, bounds, keys % segments, required)


def neighbours(points: NDArray[np.float64]) -> NDArray[np.int64]:
    """The group of every class, of two or three near ones (all, where there are fewer)."""
    group = np.zeros(len(points), np.int64)
    place = np.arange(len(points))
    while True:
        sizes = np.bincount(group)
        if sizes.max(initial=0) < 4:
            return group
        order = np.argsort(group, kind="stable")
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        ordered = points[order]
        width = np.maximum.reduceat(ordered, starts) - np.minimum.reduceat(ordered, starts)
        along = points[np.arange(len(points)), width.argmax(axis=1)[group]]
        order = np.lexsort((place, along, group))  # ties stay near those whom earlier columns put them beside
        place[order] = np.arange(len(points))
        half = np.where(sizes >= 4, sizes // 2, sizes)[group]
        group = np.unique(2 * group + (place - starts[group] >= half), return_inverse=True)[1]


def _even(reading: Reading) -> NDArray[np.float64]:
    """The weight of every segment, none of them nothing."""
    return np.where(reading.mass > 0, reading.mass, LEAST * max(float(reading.mass.max(initial=0.0)), 1.0))


def _hull(reading: Reading) -> NDArray[np.bool_] | None:
    """Which segments an interval covers, of a column of intervals: all but the one of missing values."""
    statement = reading.axis.statement
    if statement.tightness != "ends":
        return None
    out = np.ones(len(reading.size), np.bool_)
    out[len(out) - (statement.domain.missing_code is not None) :] = False
    return out


def _classes(reading: Reading, node: NDArray, sizes: NDArray[np.int64], asked: NDArray[np.int64]) -> TightClasses:
    """Classes of these codes and sizes with the segments that they cover."""
    rows = reading.rows
    assert reading.required is not None
    if rows.lengths[node].sum() > ENTRY_LIMIT:
        raise QueryError(
            f"The classes of {reading.axis.name!r} stand for {int(rows.lengths[node].sum()):,} values in total.",
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
STILL = 0.01
"""Records: coarsening at random has found its shares when no step moves more."""
MOST_STEPS = 300


@dataclass(frozen=True)
class TightClasses:
    """Classes of one size under one general value, and the segments that they may have records in."""

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
        """The parts of every class added up."""
        return np.asarray(np.add.reduceat(parts, self.bounds[:-1])) if len(parts) else np.zeros(0)

    def shares(self, even: NDArray[np.float64], known: NDArray[np.float64] | None) -> NDArray[np.float64]:
        """Which share of a class each of its segments is expected to have, given what is expected of all."""
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
        """Expected records of every segment, up to a factor for each class."""
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

    def at_random(self, even: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same if classes were coarsened at random and only say which values are possible: most probable shares."""
        owner = self.owner

        def step(table: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
            sums = np.maximum(self.sums(table[self.segment]), 1e-300)
            part = table[self.segment] / sums[owner]
            return self.total(part, len(even)), float((self.asked * np.log(sums)).sum())

        start = even * (self.asked.sum() / even.sum())
        found = ascend(step, start, STILL, MOST_STEPS)[0][self.segment]
        return np.asarray(found / np.maximum(self.sums(found), 1e-300)[owner])

    def total(self, shares: NDArray[np.float64], segments: int) -> NDArray[np.float64]:
        """How many of the rows asked about are expected in every segment."""
        return np.bincount(self.segment, shares * self.asked[self.owner], minlength=segments).astype(np.float64)


def truncated(mean: NDArray[np.float64], required: NDArray[np.bool_]) -> tuple[NDArray, NDArray]:
    """The mean of a Poisson number that is at least 1 where that is required, and its derivative."""
    some = np.maximum(-np.expm1(-mean), 1e-300)
    small = mean < 1e-4
    value = np.where(small, 1 + mean / 2, mean / some)
    slope = np.where(small, 0.5 + mean / 6, (some - mean * np.exp(-mean)) / some**2)
    return np.where(required, value, mean), np.where(required, slope, 1.0)
