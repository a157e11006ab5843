"""Means, variances, quantiles, correlations, differences and ratios, in closed form on scores.

Each is a smooth function of a few totals, so that its standard error follows from their covariance (the delta method);
a quantile is where the distribution function passes a level, and its interval is where that cannot be ruled out. One of
single values is ruled out on one side or on the other, hardly ever on both: as far as it is, each side may take more
than half of what the level leaves (Imbens and Manski 2004).

Hard bounds: between which numbers a mean, a variance or a quantile lies, whatever the published cells hide.

They assume nothing about where in its cell a value lies. A record that is certainly in a group counts; one that may be
counts where that moves the bound outwards.

Totals where general values or groups take part: from the library's own cross tabulation of the columns asked for.

Such cells have no design and so no unbiased scores. Averaging each column alone over what its cells leave open would
flatten every relation between columns; the joint table that `estimate` would show does not, under the assumption that
it names. What is told beside such numbers are hard bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError
from noren.estimates.counts.rows import row_numbers
from noren.estimates.statistics.noised import PlacedMargin, with_margins
from noren.estimates.statistics.records import Product, Records, Totals
from noren.estimates.statistics.variables import Variable


@dataclass(frozen=True, eq=False)
class Limits:
    """Of every different tuple that may count: its smallest and largest number, how many records, and whether it must
    count."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    counts: NDArray[np.float64]
    sure: NDArray[np.bool_]
    exact: float | None = None
    """The sum of all numbers, where whole groups with published tables are counted."""

    @classmethod
    def of(cls, records: Records, inside: Product, of: Variable) -> Limits:
        may, must = np.ones(len(records.counts), bool), np.ones(len(records.counts), bool)
        amounts, known = of.amounts, of.known > 0
        low, high = np.zeros(len(may)), np.zeros(len(may))
        for place in {*inside, of.axis}:
            admitted = inside.get(place, np.ones(records.scores[place].axis.d)) > 0
            own = place == of.axis
            admitted = admitted & known if own else admitted
            some, every, least, most = _reach(records, place, admitted, amounts if own else None)
            ids = records.ids[:, place]
            may &= some[ids]
            must &= every[ids]
            if own:
                low, high = least[ids], most[ids]
        return cls(low[may], high[may], records.counts[may], must[may], _whole(records, inside, of))

    def mean(self) -> tuple[float, float]:
        if self.exact is not None:
            value = self.exact / self.counts.sum()
            return value, value
        return -self._most(-self.low), self._most(self.high)

    def _most(self, values: NDArray[np.float64]) -> float:
        """The largest mean: records that must count, and of the others the largest, as long as that helps."""
        if not len(values):
            return float("nan")
        must = self.counts[self.sure] @ values[self.sure]
        there = self.counts[self.sure].sum()
        order = np.argsort(-values[~self.sure], kind="stable")
        values, counts = values[~self.sure][order], self.counts[~self.sure][order]
        sums, sizes = must + np.cumsum(values * counts), there + np.cumsum(counts)
        found = [must / there] if there else [values[0]]
        return float(max(*found, (sums / sizes).max(initial=-np.inf)))

    def variance(self) -> tuple[float, float]:
        """The least and (an upper bound of) the most, over centres: the variance is the least mean square about one."""
        if not len(self.low):
            return float("nan"), float("nan")
        if not self.sure.all():
            return 0.0, float((self.high.max() - self.low.min()) ** 2 / 4 * _more(self.counts.sum()))
        n = self.counts.sum()
        centres = np.unique(np.concatenate([self.low, self.high, np.linspace(self.low.min(), self.high.max(), 65)]))
        centres = centres[:: max(1, len(centres) // 400)]
        near = [self.counts @ (np.maximum(np.maximum(self.low - c, c - self.high), 0) ** 2) for c in centres]
        far = [self.counts @ (np.maximum(np.abs(self.low - c), np.abs(self.high - c)) ** 2) for c in centres]
        step = np.diff(centres).max(initial=0.0)
        least = max(0.0, np.sqrt(min(near) / n) - step) ** 2  # a centre between these could be this much better
        return float(least * _more(n)), float(min(far) / n * _more(n))

    def quantile(self, level: float) -> tuple[float, float]:
        if not len(self.low):
            return float("nan"), float("nan")
        if not self.sure.all():
            return float(self.low.min()), float(self.high.max())
        return _at(self.low, self.counts, level), _at(self.high, self.counts, level)


def _more(n: float) -> float:
    return n / max(n - 1, 1.0)


def _at(values: NDArray[np.float64], counts: NDArray[np.float64], level: float) -> float:
    order = np.argsort(values, kind="stable")
    share = np.cumsum(counts[order]) / counts.sum()
    return float(values[order][int(np.argmax(share >= level - 1e-9))])


def _reach(
    records: Records, place: int, admitted: NDArray[np.bool_], amounts: NDArray[np.float64] | None
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.float64], NDArray[np.float64]]:
    """Of every cell: may it be an admitted value, must it, and the smallest and largest number of those it may be."""
    axis = records.scores[place].axis
    cells = len(axis.distinct[0])
    if axis.d == 1:
        bounds, value = np.arange(cells + 1), np.zeros(cells, np.int64)
    else:
        bounds, value = axis.rows.possible(axis.d)
    starts = bounds[:-1]
    inside = admitted[value]
    some, every = np.logical_or.reduceat(inside, starts), np.logical_and.reduceat(inside, starts)
    if amounts is None:
        return some, every, np.zeros(cells), np.zeros(cells)
    least = np.minimum.reduceat(np.where(inside, amounts[value], np.inf), starts)
    most = np.maximum.reduceat(np.where(inside, amounts[value], -np.inf), starts)
    return some, every, np.where(some, least, 0.0), np.where(some, most, 0.0)


def _whole(records: Records, inside: Product, of: Variable) -> float | None:
    """The sum of all numbers where nothing but a column of groups is asked for, all of whose records are there."""
    statement = records.scores[of.axis].axis.statement
    if records.weights is not None:  # which of a group's records has which weight is not known
        return None
    if set(inside) - {of.axis} or statement.table is None or statement.fake_entries or not (of.known > 0).all():
        return None
    if of.axis in inside and not (inside[of.axis] > 0).all():
        return None
    totals = statement.table.totals
    return float(totals @ of.amounts) if totals.sum() == records.counts.sum() else None


@dataclass(frozen=True, eq=False)
class Expected:
    """Expected records of every combination of the values that the columns asked for tell apart."""

    table: NDArray[np.float64]
    places: Sequence[int]
    """The axis of every dimension."""
    first: Sequence[NDArray[np.int64]]
    """A base value for every place along a dimension."""
    assumes: str

    @classmethod
    def of(cls, records: Records, base: Product, variables: Sequence[Variable]) -> Expected:
        from noren.estimates.counts.tabulate import tabulate

        places = list(dict.fromkeys([*(variable.axis for variable in variables), *base]))
        axes, first = [], []
        for place in places:
            axis = records.scores[place].axis
            told = [variable.groups for variable in variables if variable.axis == place]
            told += [base[place].astype(np.int64)] if place in base else []
            atoms = row_numbers(told, axis.d)
            size = int(atoms.max(initial=0)) + 1
            one = np.zeros(size, np.int64)
            one[atoms] = np.arange(axis.d)
            axes.append(replace(axis, groups=atoms, n_groups=size))
            first.append(one)
        found = tabulate(axes, weights=records.weights)
        return cls(
            found.counts / (1.0 if records.weights is None else records.weights.unit), places, first, found.assumes
        )

    def totals(self, functions: Sequence[Product]) -> Totals:
        """Sums of functions, which nothing random stands behind."""
        values = []
        for function in functions:
            rest = self.table
            for place, one in zip(reversed(self.places), reversed(list(self.first)), strict=True):
                factor = function.get(place)
                rest = rest @ (np.ones(len(one)) if factor is None else factor[one])
            values.append(float(rest))
        return Totals(np.array(values), np.zeros((len(values), len(values))), float(self.table.sum()))


Factor = tuple[int, NDArray[np.float64]]


def times(*parts: Product | Factor) -> Product:
    """The product of functions; factors of one column are multiplied."""
    out: dict[int, NDArray[np.float64]] = {}
    for part in parts:
        for place, factor in [part] if isinstance(part, tuple) else part.items():
            out[place] = out[place] * factor if place in out else np.asarray(factor, np.float64)
    return out


@dataclass(frozen=True)
class Found:
    """One number with its error: at `level` it lies between low and high, or certainly where nothing is random."""

    value: float
    std_error: float
    low: float
    high: float
    records: float


@dataclass(frozen=True, eq=False)
class Sample:
    """The records a question is about: the cells, the conditions on hidden columns, and by which groups."""

    records: Records
    base: Product
    of: Sequence[Variable]
    by: Sequence[Variable]
    level: float
    population: bool
    margins: Sequence[PlacedMargin] = ()

    @property
    def z(self) -> float:
        return NormalDist().inv_cdf((1 + self.level) / 2)

    @cached_property
    def groups(self) -> list[tuple[int, ...]]:
        """Every combination of labels of the columns that split the records."""
        return list(product(*(range(len(variable.labels)) for variable in self.by)))

    def within(self, group: Sequence[int]) -> Product:
        """1 for the records of one group that meet the conditions."""
        own = [(variable.axis, variable.indicator(label)) for variable, label in zip(self.by, group, strict=True)]
        return times(self.base, *own)

    @cached_property
    def expected(self) -> Expected:
        """What is expected of general values and groups, which have no scores."""
        return Expected.of(self.records, self.base, [*self.of, *self.by])

    def totals(self, functions: Sequence[Product]) -> Totals:
        if self.records.is_coarse:
            return self.expected.totals(functions)
        if self.margins:
            return with_margins(self.records, self.margins, functions, self.population)
        return self.records.totals(functions, population=self.population)

    def limits(self, inside: Product, of: Variable) -> Limits | None:
        """Hard bounds, where a coarse cell takes part."""
        return Limits.of(self.records, inside, of) if self.records.is_coarse else None

    def normal(
        self, value: float, variance: float, records: float, within: tuple[float, float] = (-np.inf, np.inf)
    ) -> Found:
        """A number with its interval, as far as that is possible; the number itself stays unbiased."""
        error = sqrt(variance)
        low, high = np.clip([value - self.z * error, value + self.z * error], *within)
        return Found(value, error, float(low), float(high), records)


def _mean_parts(of: Variable, inside: Product) -> tuple[Product, Product]:
    there = times(inside, (of.axis, of.known))
    return there, times(there, (of.axis, of.amounts))


EMPTY = Found(np.nan, np.nan, np.nan, np.nan, 0.0)
"""Of a group that holds nobody, or too few to tell."""
FEW = 3.0
"""A group whose estimated size is not above so many of its standard errors may be empty."""

SLACK = 1e-9
"""Of shares: what adding in another order may change."""
HALVINGS = 40


def _counted(count: float, variance: float) -> bool:
    return count >= 1 and count > FEW * sqrt(max(variance, 0.0))


def _bounded(found: Found, limits: tuple[float, float] | None) -> Found:
    """A number that nothing random stands behind has no standard error; its ends are hard bounds."""
    return found if limits is None else replace(found, std_error=np.nan, low=limits[0], high=limits[1])


def means(sample: Sample, of: Variable) -> list[Found]:
    """The mean of a column in every group."""
    return [_mean(sample, of, sample.within(group)) for group in sample.groups]


def _mean(sample: Sample, of: Variable, inside: Product) -> Found:
    totals = sample.totals(_mean_parts(of, inside))
    count, total = totals.value
    if not _counted(count, totals.cov[0, 0]):
        return EMPTY
    value = total / count
    possible = of.amounts[of.known > 0]
    within = float(possible.min()), float(possible.max())
    found = sample.normal(value, totals.variance(np.array([-value, 1.0])) / count**2, count, within)
    limits = sample.limits(inside, of)
    return _bounded(found, None if limits is None else limits.mean())


def variances(sample: Sample, of: Variable) -> list[Found]:
    """The variance (over n - 1) of a column in every group."""
    return [_variance(sample, of, sample.within(group)) for group in sample.groups]


def _variance(sample: Sample, of: Variable, inside: Product) -> Found:
    there, first = _mean_parts(of, inside)
    totals = sample.totals([there, first, times(first, (of.axis, of.amounts))])
    count, total, squares = totals.value
    if not _counted(count, totals.cov[0, 0]) or count <= 1:
        return EMPTY
    mean = total / count
    scale = count / (count - 1)
    value = (squares / count - mean**2) * scale
    gradient = np.array([2 * mean**2 - squares / count, -2 * mean, 1.0]) / count * scale
    found = sample.normal(value, totals.variance(gradient), count, (0.0, np.inf))
    limits = sample.limits(inside, of)
    return _bounded(found, None if limits is None else limits.variance())


def contrasts(sample: Sample, of: Variable, against: int, *, ratio: bool) -> list[Found]:
    """Every group's mean less (or over) that of one group."""
    base = sample.within(sample.groups[against])
    out = []
    for place, group in enumerate(sample.groups):
        totals = sample.totals([*_mean_parts(of, sample.within(group)), *_mean_parts(of, base)])
        (n, s, m, t), cov = totals.value, totals.cov
        if not (_counted(n, cov[0, 0]) and _counted(m, cov[2, 2])):
            out.append(EMPTY)
            continue
        a, b = s / n, t / m
        first, second = np.array([-a, 1.0, 0, 0]) / n, np.array([0, 0, -b, 1.0]) / m
        if place == against:
            value = 1.0 if ratio else 0.0
            out.append(Found(value, 0.0, value, value, n))
        elif ratio:
            out.append(_over(_ratio(sample, totals, a, b, first, second, n), sample, of, group, against))
        else:
            found = sample.normal(a - b, totals.variance(first - second), n)
            out.append(_apart(found, sample, of, group, against))
    return out


def _apart(found: Found, sample: Sample, of: Variable, group: Sequence[int], against: int) -> Found:
    """Hard bounds of a difference: the ends that are furthest apart."""
    one, two = (sample.limits(sample.within(each), of) for each in (group, sample.groups[against]))
    if one is None or two is None:
        return found
    (low, high), (least, most) = one.mean(), two.mean()
    return _bounded(found, (low - most, high - least))


def _over(found: Found, sample: Sample, of: Variable, group: Sequence[int], against: int) -> Found:
    """Hard bounds of a ratio of means that are not negative; everything where the lower may be zero."""
    one, two = (sample.limits(sample.within(each), of) for each in (group, sample.groups[against]))
    if one is None or two is None:
        return found
    (low, high), (least, most) = one.mean(), two.mean()
    return _bounded(found, (low / most, high / least) if low >= 0 and least > 0 else (-np.inf, np.inf))


def _ratio(sample: Sample, totals: Totals, a: float, b: float, first: NDArray, second: NDArray, count: float) -> Found:
    """By Fieller: the ratios that are not ruled out; infinite ends where the lower mean may be zero."""
    z2, value = sample.z**2, a / b if b else np.nan
    vaa, vbb = totals.variance(first), totals.variance(second)
    vab = float(first @ totals.cov @ second)
    error = sqrt(max(vaa - 2 * value * vab + value**2 * vbb, 0.0)) / abs(b) if b else np.nan
    bottom, middle, top = b * b - z2 * vbb, a * b - z2 * vab, a * a - z2 * vaa
    if bottom <= 0:
        return Found(value, error, -np.inf, np.inf, count)
    root = sqrt(max(middle**2 - bottom * top, 0.0))
    return Found(value, error, (middle - root) / bottom, (middle + root) / bottom, count)


def correlations(sample: Sample, one: Variable, two: Variable) -> list[Found]:
    """Pearson's correlation in every group; the interval is Fisher's."""
    return [_correlation(sample, one, two, sample.within(group)) for group in sample.groups]


def _correlation(sample: Sample, one: Variable, two: Variable, inside: Product) -> Found:
    there = times(inside, (one.axis, one.known), (two.axis, two.known))
    x, y = (one.axis, one.amounts), (two.axis, two.amounts)
    parts = [there, times(there, x), times(there, y), times(there, x, x), times(there, y, y), times(there, x, y)]
    totals = sample.totals(parts)
    n = totals.value[0]
    if not _counted(n, totals.cov[0, 0]):
        return EMPTY
    mx, my, xx, yy, xy = totals.value[1:] / n
    vx, vy, c = xx - mx * mx, yy - my * my, xy - mx * my
    if vx <= 0 or vy <= 0:
        return EMPTY
    r = c / sqrt(vx * vy)
    if sample.records.is_coarse:
        return Found(r, np.nan, -1.0, 1.0, n)
    # gradient in the means, then in the totals
    dx, dy = -r / (2 * vx), -r / (2 * vy)
    scale = 1 / sqrt(vx * vy)
    slope = np.array([-my * scale - 2 * mx * dx, -mx * scale - 2 * my * dy, dx, dy, scale])
    gradient = np.concatenate([[-float(slope @ np.array([mx, my, xx, yy, xy]))], slope]) / n
    error = sqrt(totals.variance(gradient))
    if abs(r) >= 1:
        return Found(
            float(np.clip(r, -1, 1)), error, max(-1.0, r - sample.z * error), min(1.0, r + sample.z * error), n
        )
    centre, reach = np.arctanh(r), sample.z * error / (1 - r * r)
    return Found(r, error, float(np.tanh(centre - reach)), float(np.tanh(centre + reach)), n)


def quantiles(sample: Sample, of: Variable, level: float) -> list[Found]:
    """The value below which this share of a group's records lies. Inside a bin records are spread evenly."""
    if not 0 < level < 1:
        raise QueryError(f"q={level} is not a share between 0 and 1.", hint="0.5 is the median.")
    return [_quantile(sample, of, sample.within(group), level) for group in sample.groups]


def _quantile(sample: Sample, of: Variable, inside: Product, level: float) -> Found:
    numbers = of.numbers if of.numbers is not None else np.unique(of.amounts)
    at = np.unique(numbers[np.isfinite(numbers)])
    there = times(inside, (of.axis, of.known))
    upto = [times(there, (of.axis, (of.amounts <= each).astype(np.float64))) for each in at[:-1]]
    share, error, count = _shares(sample, there, upto)
    if not count:
        return EMPTY
    share, error = np.append(share, 1.0), np.append(error, 0.0)
    reach = sample.z * error
    share = np.clip(_rising(share, np.append(1 / np.maximum(error[:-1], 1e-12) ** 2, 1e12)), 0, 1)
    if of.edges is not None:
        ends = np.concatenate([[0.0], share])
        wide = np.concatenate([[0.0], reach])
        value = _crossing(of.edges, ends, level)
        low = _crossing(of.edges, np.maximum.accumulate(np.minimum(ends + wide, 1)), level)
        high = _crossing(of.edges, np.maximum.accumulate(ends - wide), level)
    else:
        value = at[int(np.argmax(share >= level - SLACK))]
        own = _shares(sample, there, [times(there, (of.axis, (of.amounts == each).astype(np.float64))) for each in at])
        kept = at[_not_ruled_out(share, error, own[1], level, sample.level)]
        low, high = min(kept.min(initial=value), value), max(kept.max(initial=value), value)
    half = (high - low) / 2 / sample.z
    found, limits = Found(value, half, low, high, count), sample.limits(inside, of)
    return _bounded(found, None if limits is None else limits.quantile(level))


def _not_ruled_out(
    share: NDArray[np.float64], error: NDArray[np.float64], own: NDArray[np.float64], level: float, wanted: float
) -> NDArray[np.bool_]:
    """Of values with these shares up to them: whether the quantile may be there.

    It is at a value where the share before it is below the level and the share up to it is not. Whether that may be is
    two tests, of which one can fail alone where the two shares are far apart: how far is known but for the error of a
    value's `own` share, which is taken off.
    """
    before, off = np.concatenate([[0.0], share[:-1]]), np.concatenate([[0.0], error[:-1]])
    apart = np.maximum(share - before - own, 0.0) / np.maximum(np.maximum(error, off), 1e-12)
    reach = _one_or_two_sided(apart, wanted)
    return np.asarray((share + reach * error >= level - SLACK) & (before - reach * off < level - SLACK))


def _one_or_two_sided(apart: NDArray[np.float64], wanted: float) -> NDArray[np.float64]:
    """How many standard errors to allow on either side of an interval of this width, so that each of its points is
    covered as often as wanted: those of a two-sided test for a width of 0, of a one-sided one for a large width."""
    from scipy.special import ndtr

    low = np.full(apart.shape, NormalDist().inv_cdf(wanted))
    high = np.full(apart.shape, NormalDist().inv_cdf((1 + wanted) / 2))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        short = ndtr(middle + apart) - ndtr(-middle) < wanted
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return high


def _shares(sample: Sample, there: Product, parts: Sequence[Product]) -> tuple[NDArray, NDArray, float]:
    """The share of each part among the records that are there, with standard errors."""
    values, errors, count = [], [], 0.0
    whole = sample.totals([there])
    if not _counted(float(whole.value[0]), float(whole.cov[0, 0])):
        return np.zeros(0), np.zeros(0), 0.0
    count = float(whole.value[0])
    for part in parts:
        totals = sample.totals([there, part])
        share = totals.value[1] / count
        values.append(share)
        errors.append(sqrt(totals.variance(np.array([-share, 1.0]))) / count)
    return np.array(values), np.array(errors), count


def _rising(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nearest numbers that never fall."""
    from scipy.optimize import isotonic_regression

    return np.asarray(isotonic_regression(values, weights=weights).x)


def _crossing(edges: NDArray[np.float64], share: NDArray[np.float64], level: float) -> float:
    """Where a rising line through the shares at the edges reaches the level."""
    place = int(np.argmax(share >= level - 1e-12)) if (share >= level - 1e-12).any() else len(share) - 1
    if place == 0:
        return float(edges[0])
    before, after = share[place - 1], share[place]
    part = 1.0 if after <= before else float(np.clip((level - before) / (after - before), 0, 1))
    return float(edges[place - 1] + part * (edges[place] - edges[place - 1]))


def labels_of(sample: Sample) -> Iterable[tuple[str, ...]]:
    """The labels of every group, in the order of results."""
    for group in sample.groups:
        yield tuple(variable.labels[label] for variable, label in zip(sample.by, group, strict=True))
