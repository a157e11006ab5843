"""Means, variances, quantiles, correlations, differences and ratios, in closed form from scores.

Each is a smooth function of a few totals, so that its standard error follows from their covariance (the delta method);
a quantile is where the distribution function passes a level, and its interval is where that cannot be ruled out. One of
single values is ruled out on one side or on the other, hardly ever on both: as far as it is, each side may take more
than half of what the level leaves (Imbens and Manski 2004).

Hard bounds: between which numbers a mean, a variance or a quantile lies, whatever the published cells hide.

They assume nothing about where in its cell a value lies. A record that is certainly in a group counts; one that may be
counts where that moves the bound outwards.

Totals where generalised values or groups take part: from the library's own cross tabulation of the columns asked for.

Such cells have no design and so no unbiased scores. Averaging each column alone over what its cells leave open would
flatten every relation between columns; the joint table that `estimate` would show does not, under the assumption that
it names. What is told beside such numbers are hard bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from math import sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError
from noren.estimates.statistics.noised import PlacedMargin, with_margins
from noren.estimates.statistics.records import Product, Records, Totals, Variable


@dataclass(frozen=True, eq=False)
class Limits:
    """The limits of every distinct tuple that may count: its smallest and largest number, its records, and whether it
    must count."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    counts: NDArray[np.float64]
    sure: NDArray[np.bool_]
    exact: tuple[float, float] | None = None
    """The least and the largest sum of all numbers, where whole groups with published tables are counted."""

    @classmethod
    def of(cls, records: Records, inside: Product, of: Variable) -> Limits:
        may, must = np.ones(len(records.counts), bool), np.ones(len(records.counts), bool)
        known = of.known > 0
        low, high = np.zeros(len(may)), np.zeros(len(may))
        for place in {*inside, of.axis}:
            admitted = inside.get(place, np.ones(records.scores[place].axis.d)) > 0
            own = place == of.axis
            admitted = admitted & known if own else admitted
            some, every, least, most = _reach(records, place, admitted, of.ends if own else None)
            ids = records.ids[:, place]
            may &= some[ids]
            must &= every[ids]
            if own:
                low, high = least[ids], most[ids]
        return cls(low[may], high[may], records.counts[may], must[may], _whole(records, inside, of))

    def mean(self) -> tuple[float, float]:
        if self.exact is not None:
            return self.exact[0] / self.counts.sum(), self.exact[1] / self.counts.sum()
        return -self._most(-self.low), self._most(self.high)

    def _most(self, values: NDArray[np.float64]) -> float:
        """Return the largest possible mean: of records that must count, and of others with large numbers."""
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
        """Return the smallest variance and an upper bound of the largest."""
        if not len(self.low):
            return float("nan"), float("nan")
        if not self.sure.all():
            return 0.0, float((self.high.max() - self.low.min()) ** 2 / 4 * _more(self.counts.sum()))
        n, ends = self.counts.sum(), np.concatenate([self.low, self.high])
        ends = ends[np.isfinite(ends)]  # an open interval has one end
        centres = np.unique(np.concatenate([ends, np.linspace(ends.min(), ends.max(), 65)]))
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
    records: Records, place: int, admitted: NDArray[np.bool_], ends: tuple[NDArray, NDArray] | None
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.float64], NDArray[np.float64]]:
    """Return for every cell whether it may be or must be an admitted value, and the range of its numbers."""
    axis = records.scores[place].axis
    cells = len(axis.distinct[0])
    if axis.d == 1:
        bounds, value = np.arange(cells + 1), np.zeros(cells, np.int64)
    else:
        bounds, value = axis.rows.possible(axis.d)
    starts = bounds[:-1]
    inside = admitted[value]
    some, every = np.logical_or.reduceat(inside, starts), np.logical_and.reduceat(inside, starts)
    if ends is None:
        return some, every, np.zeros(cells), np.zeros(cells)
    least = np.minimum.reduceat(np.where(inside, ends[0][value], np.inf), starts)
    most = np.maximum.reduceat(np.where(inside, ends[1][value], -np.inf), starts)
    return some, every, np.where(some, least, 0.0), np.where(some, most, 0.0)


def _whole(records: Records, inside: Product, of: Variable) -> tuple[float, float] | None:
    """Return the smallest and largest sum of all numbers if only a column of groups is requested, with all its
    records."""
    statement = records.scores[of.axis].axis.statement
    if records.weights is not None:  # which of a group's records has which weight is not known
        return None
    if set(inside) - {of.axis} or statement.table is None or statement.fake_entries or not (of.known > 0).all():
        return None
    if of.axis in inside and not (inside[of.axis] > 0).all():
        return None
    totals = statement.table.totals
    low, high = (np.where(totals > 0, end, 0.0) for end in of.ends)
    return (float(totals @ low), float(totals @ high)) if totals.sum() == records.counts.sum() else None


@dataclass(frozen=True, eq=False)
class Expected:
    """The expected records of every combination of the requested columns, as `estimate` gives them."""

    table: NDArray[np.float64]
    places: Sequence[int]
    """The axis of every dimension."""
    first: Sequence[NDArray[np.int64]]
    """A base value for every place along a dimension."""
    assumes: str

    def totals(self, functions: Sequence[Product]) -> Totals:
        """Return sums of functions of exact cells, without random error."""
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
    """Return the product of functions; factors of one column are multiplied."""
    out: dict[int, NDArray[np.float64]] = {}
    for part in parts:
        for place, factor in [part] if isinstance(part, tuple) else part.items():
            out[place] = out[place] * factor if place in out else np.asarray(factor, np.float64)
    return out


@dataclass(frozen=True)
class Found:
    """A number with its error: at `level` it is between low and high, or certainly if nothing is random."""

    value: float
    std_error: float
    low: float
    high: float
    records: float


@dataclass(frozen=True, eq=False)
class Sample:
    """The records of a question: the cells, the conditions on hidden columns, and the groups."""

    records: Records
    base: Product
    of: Sequence[Variable]
    by: Sequence[Variable]
    level: float
    population: bool
    margins: Sequence[PlacedMargin] = ()
    expect: Callable[[], Expected] | None = None
    """Works out what is expected of generalised values and groups, which have no scores."""

    @property
    def z(self) -> float:
        return NormalDist().inv_cdf((1 + self.level) / 2)

    @cached_property
    def groups(self) -> list[tuple[int, ...]]:
        """Return every combination of labels of the columns that split the records."""
        return list(product(*(range(len(variable.labels)) for variable in self.by)))

    def within(self, group: Sequence[int]) -> Product:
        """Return 1 for the records of one group that meet the conditions."""
        own = [(variable.axis, variable.indicator(label)) for variable, label in zip(self.by, group, strict=True)]
        return times(self.base, *own)

    @cached_property
    def expected(self) -> Expected:
        """Return the expected values of generalised values and groups."""
        assert self.expect is not None
        return self.expect()

    def totals(self, functions: Sequence[Product]) -> Totals:
        if self.records.is_coarse:
            return self.expected.totals(functions)
        if self.margins:
            return with_margins(self.records, self.margins, functions, self.population)
        return self.records.totals(functions, population=self.population)

    def limits(self, inside: Product, of: Variable) -> Limits | None:
        """Return hard bounds if a coarse cell is involved."""
        return Limits.of(self.records, inside, of) if self.records.is_coarse else None

    def normal(
        self, value: float, variance: float, records: float, within: tuple[float, float] = (-np.inf, np.inf)
    ) -> Found:
        """Return a number with its interval, clipped to possible values; the number itself stays unbiased."""
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
    """Return a number without a standard error, because nothing is random; its ends are hard bounds."""
    return found if limits is None else replace(found, std_error=np.nan, low=limits[0], high=limits[1])


def means(sample: Sample, of: Variable) -> list[Found]:
    """Return the mean of a column in every group."""
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
    """Return the variance (with n - 1) of a column in every group."""
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
    """Return the difference (or ratio) of every group's mean and that of one group."""
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


def standardized(sample: Sample, of: Variable, over: Variable, standard: Sequence[float] | None) -> list[Found]:
    """Return every group's mean, with the records of `over` distributed as in the standard, by default as all
    records."""
    out, labels = [], range(len(over.labels))
    for group in sample.groups:
        inside = sample.within(group)
        strata = [times(inside, (over.axis, over.indicator(label))) for label in labels]
        every = [times(sample.base, (over.axis, over.indicator(label)), (of.axis, of.known)) for label in labels]
        parts = [part for stratum in strata for part in _mean_parts(of, stratum)]
        totals = sample.totals([*parts, *every])
        counts, sums, whole = (
            totals.value[: len(parts) : 2],
            totals.value[1 : len(parts) : 2],
            totals.value[len(parts) :],
        )
        errors = np.sqrt(np.maximum(np.diag(totals.cov)[: len(parts) : 2], 0.0))
        weight = np.asarray(whole if standard is None else standard, np.float64)
        weight = np.where(weight > 0, weight, 0.0)
        if not weight.any() or (weight > 0)[(counts < 1) | (counts <= FEW * errors)].any():
            out.append(EMPTY)
            continue
        used = weight > 0
        means_of = np.divide(sums, counts, out=np.zeros_like(sums), where=used)
        share = weight / weight.sum()
        value = float(share @ means_of)
        gradient = np.zeros(len(totals.value))
        gradient[1 : len(parts) : 2][used] = share[used] / counts[used]
        gradient[: len(parts) : 2][used] = -share[used] * means_of[used] / counts[used]
        if standard is None:
            gradient[len(parts) :] = np.where(used, (means_of - value) / weight.sum(), 0.0)
        possible = of.amounts[of.known > 0]
        within = float(possible.min()), float(possible.max())
        out.append(sample.normal(value, totals.variance(gradient), float(counts.sum()), within))
    return out


def _apart(found: Found, sample: Sample, of: Variable, group: Sequence[int], against: int) -> Found:
    """Return hard bounds of a difference."""
    one, two = (sample.limits(sample.within(each), of) for each in (group, sample.groups[against]))
    if one is None or two is None:
        return found
    (low, high), (least, most) = one.mean(), two.mean()
    return _bounded(found, (low - most, high - least))


def _over(found: Found, sample: Sample, of: Variable, group: Sequence[int], against: int) -> Found:
    """Return hard bounds of a ratio of nonnegative means; unbounded if the denominator may be zero."""
    one, two = (sample.limits(sample.within(each), of) for each in (group, sample.groups[against]))
    if one is None or two is None:
        return found
    (low, high), (least, most) = one.mean(), two.mean()
    return _bounded(found, (low / most, high / least) if low >= 0 and least > 0 else (-np.inf, np.inf))


def _ratio(sample: Sample, totals: Totals, a: float, b: float, first: NDArray, second: NDArray, count: float) -> Found:
    """Return Fieller's interval of a ratio; infinite ends if the denominator may be zero."""
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
    """Return Pearson's correlation in every group, with Fisher's interval."""
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
    """Return the value below which this share of a group's records is; records are evenly spread inside a bin."""
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
    """Return which values may be the quantile, given the cumulative shares.

    It is at a value where the share before it is below the level and the share up to it is not. Whether that may be is
    two tests, of which one can fail alone where the two shares are far apart: how far is known but for the error of a
    value's `own` share, which is taken off.
    """
    before, off = np.concatenate([[0.0], share[:-1]]), np.concatenate([[0.0], error[:-1]])
    apart = np.maximum(share - before - own, 0.0) / np.maximum(np.maximum(error, off), 1e-12)
    reach = _one_or_two_sided(apart, wanted)
    return np.asarray((share + reach * error >= level - SLACK) & (before - reach * off < level - SLACK))


def _one_or_two_sided(apart: NDArray[np.float64], wanted: float) -> NDArray[np.float64]:
    """Return how many standard errors an interval of this width needs on either side to cover each of its points as
    required: those of a two-sided test for width 0, of a one-sided test for large widths."""
    from scipy.special import ndtr

    low = np.full(apart.shape, NormalDist().inv_cdf(wanted))
    high = np.full(apart.shape, NormalDist().inv_cdf((1 + wanted) / 2))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        short = ndtr(middle + apart) - ndtr(-middle) < wanted
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return high


def _shares(sample: Sample, there: Product, parts: Sequence[Product]) -> tuple[NDArray, NDArray, float]:
    """Return the share of each part among the nonmissing records, with standard errors."""
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
    """Return the nearest nondecreasing numbers."""
    from scipy.optimize import isotonic_regression

    return np.asarray(isotonic_regression(values, weights=weights).x)


def _crossing(edges: NDArray[np.float64], share: NDArray[np.float64], level: float) -> float:
    """Return where a rising line through the shares at the edges reaches the level."""
    place = int(np.argmax(share >= level - 1e-12)) if (share >= level - 1e-12).any() else len(share) - 1
    if place == 0:
        return float(edges[0])
    before, after = share[place - 1], share[place]
    part = 1.0 if after <= before else float(np.clip((level - before) / (after - before), 0, 1))
    return float(edges[place - 1] + part * (edges[place] - edges[place - 1]))


def labels_of(sample: Sample) -> Iterable[tuple[str, ...]]:
    """Return the labels of every group, in the order of results."""
    for group in sample.groups:
        yield tuple(variable.labels[label] for variable, label in zip(sample.by, group, strict=True))
