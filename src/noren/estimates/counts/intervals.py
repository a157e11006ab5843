"""Standard errors and intervals of estimated counts of exact and drawn columns.

Two sources. *Linear*: a record's score for a product group G is the product over the attributes of what the column's
design makes of a set (`designs.inversion`); the scores are independent and unbiased, so the variance of their sum is
known for every table, and for sums of cells without adding variances of cells. *Fisher*: the curvature of the
likelihood, J = sum_i L_i L_i' / (L_i . x)^2, gives shorter intervals, but only away from zero, where it is smooth.
The hybrid takes Fisher's where the estimate exceeds three of its standard errors and a linear one, and the linear one
elsewhere; tables of three columns and more narrow the latter (`narrowed`). A count that the sets do not determine has
neither, only bounds.

Sums over cells of a table that EM stopped early have the linear interval. What stopping costs a single cell is small
beside its error; over a sum it adds up, and where columns follow each other the maximum of the likelihood, which has
no cell below zero, is off as well. Scores are unbiased for every sum, and no more than 0 to 20% wider there
(`benchmarks/count_coverage.py`).

By default the truth is the original table, and only the decoys are random; with `population` the table itself is a
sample of N, and sampling is added. Where a person may have m rows, every variance is multiplied by m (`inflation`).

Intervals of tables with three columns and more, where most cells are too small for their own sets to tell.

A linear interval of such a cell is many times as wide as the estimate is wrong. Two things narrow its upper end. A cell
holds at most what its margins hold. And cells are about as large as they are estimated: with an exponential prior whose
mean is four times the estimate and five records more (or a fiftieth of the linear standard error: in millions of
records small estimates are wrong by more than five), the upper end is a quantile of what is then believed of the cell,
given its unbiased linear estimate. Where the linear estimate is sharp it decides alone. The lower end stays.

Such an interval holds for cells on average (of every size in the simulations of `benchmarks/likelihood_census.py`), not
for one cell that was chosen because it is an exception.

How much an estimated table understates the associations of its columns.

EM that stops early pulls a table towards its start, and how far it went is known: a plain step closes a part lambda of
the gap to the maximum along a direction of which the sets keep a share lambda of the information, so that t steps leave
(1 - lambda)^t of it. What is left out of an association is foretold by the mean of two such losses: of its own
direction, which what was lost is missing from, and of a direction with the columns' average information. On generated
tables that is within 0.1 of the loss on average (`benchmarks/shrinkage_generated.py`). Comparing with the linear
estimate, whose noise hides all but large losses, added nothing to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from noren.designs.inversion import ClosedInversion, stretched
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.frame import Frame
from noren.estimates.counts.held_out import DRAWN
from noren.estimates.counts.tuples import Fit, converge

LABELS = np.array(["exact", "linear", "fisher", "none", "hard", "posterior"])
EXACT, LINEAR, FISHER, NONE, HARD, POSTERIOR = range(6)

FISHER_CELLS = 2500  # beyond, J is not formed
FISHER_ENTRIES = 25_000_000  # over all exact slots together
FISHER_PAIRS = 150_000_000  # of members of distinct sets: a gigabyte
FISHER_WORK = 2e10  # additions: some ten seconds
RIDGE = 1e-10
NEGLIGIBLE = 1e-3  # records: a cell estimated below is taken as empty


@dataclass(frozen=True)
class Interval:
    """Standard errors and bounds over (slot, decoy groups), and the source of each."""

    std_error: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    source: NDArray[np.int8]


def linear_scores(frame: Frame, w: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum the records' scores over (slot, groups of drawn axes) from the inclusion counts w, which is unbiased."""
    for j, axis in enumerate(frame.decoys, start=1):
        w = axis.scoring.sums(w, j)
    return w


def linear_variance(frame: Frame, x: NDArray[np.float64], *, population: bool = False) -> NDArray[np.float64]:
    """Return the variance of `linear_scores` if the true table is x: (K x)_G - x_G, or (K x)_G - x_G^2 / N with
    sampling."""
    moment = square = frame.squared(x)
    for j, axis in enumerate(frame.decoys, start=1):
        moment = axis.scoring.second_moments(moment, j)
    error = moment - (frame.sum_groups(x) ** 2 / max(frame.n, 1) if population else frame.sum_groups(square))
    return np.maximum(error + _inclusion_variance(frame, x), 0.0)


def _inclusion_variance(frame: Frame, x: NDArray[np.float64]) -> NDArray[np.float64] | float:
    """Return the variance from Monte Carlo errors of inclusion probabilities."""
    total: NDArray[np.float64] | float = 0.0
    for j, axis in enumerate(frame.decoys, start=1):
        if axis.design.inversion.error:
            rest = x
            for k, other in enumerate(frame.decoys, start=1):
                rest = rest if k == j else other.grouping.sum(rest, k)
            total = total + axis.scoring.noise(rest**2, j)
    return total


def likelihood_maximum(frame: Frame, found: Fit) -> NDArray[np.float64]:
    """Return the limit of EM, around which intervals are computed, because a table that was stopped early is still near
    its start.

    Only for one column of values that are far apart, split by exact ones. Its sets tell distant values apart, hence
    little about neighbours, and stopping early shows; elsewhere it does not, and going on would cost more than it
    gives.
    """
    if found.maximum is not None:
        return found.maximum
    split = frame.shape[0] > 1 and len(frame.decoys) == 1 and frame.decoys[0].design.threshold is not None
    if not split or frame.kept == 0:
        return found.table
    return converge(frame.tuples, np.maximum(found.table, 1e-6), DRAWN.tolerance).table


def fisher_variance(frame: Frame, x: NDArray[np.float64], *, population: bool = False) -> NDArray[np.float64] | None:
    """Return g' (J^-1 - diag(x)) g for every reported group g, or g' J^-1 g - x_G^2 / N with sampling; None if J is too
    large.

    J is block-diagonal over exact slots. It is inverted as S (S J S)^-1 S with S = diag(sqrt(x)): at the maximum the
    eigenvalues of S J S lie in [0, 1] and tell which share of a count's information survives the decoys.
    """
    cells = prod(frame.shape[1:])
    starred = prod((axis.d + (axis.design.p < 1)) ** 2 for axis in frame.decoys)
    if cells > FISHER_CELLS or starred * frame.shape[0] > FISHER_ENTRIES:
        return None
    pairs = sum(float(np.square(axis.rows.lengths + 1.0).sum()) for axis in frame.decoys)
    if pairs > FISHER_PAIRS or frame.tuples.information_work() > FISHER_WORK:
        return None
    from scipy.linalg import cholesky, solve_triangular

    sums = frame.tuples.em_pass(x)[1]
    blocks = frame.tuples.information(sums)
    meat = None if frame.survey is None else frame.tuples.squared().information(sums)
    square = frame.squared(x)
    group_of = np.zeros(1, np.int64)
    for axis in frame.decoys:
        step = np.where(axis.grouping.of < 0, -(1 << 40), axis.grouping.of)
        group_of = (group_of[:, None] * axis.size + step).ravel()
    sizes = [axis.size for axis in frame.decoys]
    out = np.full((frame.shape[0], prod(sizes)), np.inf)
    for slot, block in enumerate(blocks):
        values = x[slot].ravel()
        live = np.flatnonzero(values > NEGLIGIBLE)
        if not len(live):
            continue
        root = np.sqrt(values[live])
        scaled = block[np.ix_(live, live)] * np.outer(root, root)
        scaled[np.diag_indices(len(live))] += RIDGE
        counted = np.flatnonzero(group_of[live] >= 0)
        groups = np.zeros((len(live), prod(sizes)))
        groups[counted, group_of[live][counted]] = root[counted]
        try:
            factor = cholesky(scaled, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            continue
        solved = solve_triangular(factor, groups, lower=True, check_finite=False)
        if meat is None:
            variance = np.square(solved).sum(axis=0)
        else:  # of weighted records the inverse alone is not the variance: a sandwich
            back = root[:, None] * solve_triangular(factor, solved, lower=True, trans=1, check_finite=False)
            variance = (back * (meat[slot][np.ix_(live, live)] @ back)).sum(axis=0)
        mean = (groups * root[:, None]).sum(axis=0)
        own = (groups * (square[slot].ravel()[live] / root)[:, None]).sum(axis=0)
        out[slot] = variance - (mean**2 / frame.n if population else own)
    return np.asarray(np.maximum(out, 0.0).reshape(frame.shape[0], *sizes))


def linear_interval(
    frame: Frame,
    centre: NDArray[np.float64],
    x: NDArray[np.float64],
    *,
    level: float,
    population: bool,
    inflation: float = 1.0,
) -> Interval:
    """Return centre +- z se with the linear standard error at the table x, within possible values."""
    error = np.sqrt(inflation * linear_variance(frame, x, population=population))
    reach = NormalDist().inv_cdf((1 + level) / 2) * error
    source = np.full(error.shape, LINEAR if frame.decoys else EXACT, np.int8)
    low, high = _possible(frame, centre - reach, centre + reach, population)
    return Interval(error, low, high, source)


def hybrid_interval(
    frame: Frame,
    linear: NDArray[np.float64],
    x: NDArray[np.float64],
    *,
    level: float,
    population: bool,
    maximum: NDArray[np.float64] | None = None,
    inflation: float = 1.0,
) -> Interval:
    """Return Fisher's interval if the estimate x exceeds 3 of its standard errors and a linear one, otherwise the
    linear interval.

    Where the second condition fails, a cell is so near zero that its curvature says little. Fisher's interval stands
    around the maximum of the likelihood, if that is given, else around x.
    """
    wide = linear_interval(frame, linear, x, level=level, population=population, inflation=inflation)
    if not frame.decoys or frame.kept == 0:
        return wide
    variance = fisher_variance(frame, x, population=population)
    if variance is None:
        return wide
    count, error = frame.sum_groups(x), np.sqrt(inflation * variance)
    smooth = (count > 3 * error) & (count > wide.std_error) & (frame.is_single | _one_cell(frame))
    count = count if maximum is None else frame.sum_groups(maximum)
    reach = NormalDist().inv_cdf((1 + level) / 2) * np.where(smooth, error, 0.0)
    low, high = _possible(frame, count - reach, count + reach, population)
    return Interval(
        std_error=np.where(smooth, error, wide.std_error),
        low=np.where(smooth, low, wide.low),
        high=np.where(smooth, high, wide.high),
        source=np.where(smooth, FISHER, wide.source).astype(np.int8),
    )


def _one_cell(frame: Frame) -> NDArray[np.bool_]:
    """Return a (1, groups of drawn axes) array: which counts are of one combination of values, not sums over
    several."""
    out = np.ones((1,) * (len(frame.decoys) + 1), np.bool_)
    for j, axis in enumerate(frame.decoys, start=1):
        out = out & (stretched(axis.grouping.sizes, j, out.ndim) == 1)
    return out


def _possible(frame: Frame, low: NDArray, high: NDArray, population: bool) -> tuple[NDArray, NDArray]:
    """Clip bounds to 0 and the number of records: of the exact slot, or of all with sampling."""
    most = np.full(len(frame.slots), np.inf if frame.survey else float(frame.n)) if population else frame.records
    top = stretched(most, 0, low.ndim)
    return np.clip(low, 0.0, top), np.clip(high, 0.0, top)


def bound_lost(frame: Frame, found: Interval, *, level: float, population: bool, inflation: float = 1.0) -> Interval:
    """Replace intervals that sets do not determine by bounds: the records that must be counted, and those that can be.
    With sampling, the sampling error is added."""
    if not frame.lost.any():
        return found
    low, high = frame.bounds()
    if population:
        z, n = NormalDist().inv_cdf((1 + level) / 2), max(frame.n, 1)
        low, high = (
            b + s * z * np.sqrt(inflation * np.maximum(b, 1) * np.maximum(1 - b / n, 0.0))
            for b, s in ((low, -1), (high, 1))
        )
    low, high = _possible(frame, low, high, population)
    lost = np.broadcast_to(frame.lost, low.shape)
    return Interval(
        std_error=np.where(lost, (high - low) / 2, found.std_error),
        low=np.where(lost, low, found.low),
        high=np.where(lost, high, found.high),
        source=np.where(lost, NONE, found.source).astype(np.int8),
    )


def hide_blind(
    axes: Sequence[Axis], counts: NDArray[np.float64], found: Interval
) -> tuple[NDArray[np.float64], Interval]:
    """Give every group of a blind axis an even share of the count, and bounds from 0 to the whole count.

    A group that holds the whole domain keeps what is known of the rest.
    """
    share = np.ones(counts.shape)
    for j, axis in enumerate(axes):
        if axis.is_blind:
            share = share * stretched(axis.grouping.sizes / axis.d, j, counts.ndim)
    part, empty = share < 1, share == 0
    high = np.where(empty, 0.0, found.high)
    return counts * share, Interval(
        std_error=np.where(part, high / 2, found.std_error),
        low=np.where(part, 0.0, found.low),
        high=high,
        source=np.where(part, NONE, found.source).astype(np.int8),
    )


Floats = NDArray[np.float64]
FACTOR, MORE_RECORDS = 4.0, 5.0  # of the prior's mean: chosen on Adult and the census shape
OF_ERROR = 0.02  # of the linear standard error, at least: chosen on the census shape of a million records
MOST_MARGIN = 2


def narrowed(frame: Frame, found: Interval, centre: Floats, x: Floats, level: float) -> Interval:
    """Lower the upper ends of intervals by margins and estimates; `centre` is the linear estimate."""
    count = frame.sum_groups(x)
    z = NormalDist().inv_cdf((1 + level) / 2)
    top = np.maximum(_most(frame, x, z), count + 1e-9)
    error, blurred = np.maximum(found.std_error, 1e-9), (found.source == LINEAR) & _one_cell(frame)
    share = np.full(count.shape, (1 + level) / 2)
    mean = FACTOR * count + np.maximum(MORE_RECORDS, OF_ERROR * error)
    believed = _quantile(centre - error**2 / mean, error, top, share)
    high = np.where(blurred, np.minimum(believed, found.high), found.high)
    high = np.where(blurred | (found.source == FISHER), np.minimum(high, top), high)
    low = np.minimum(found.low, count)
    high = np.maximum(high, count)
    changed = blurred & (high < found.high)
    return Interval(
        std_error=np.where(changed, np.minimum(found.std_error, (high - low) / (2 * z)), found.std_error),
        low=low,
        high=high,
        source=np.where(changed, POSTERIOR, found.source).astype(np.int8),
    )


def _most(frame: Frame, x: Floats, z: float) -> Floats:
    """Return the upper ends that single columns and pairs imply for their cells, over (slot, groups)."""
    w, most = frame.inclusions, np.full((1,) * (len(frame.decoys) + 1), np.inf)
    places = range(len(frame.decoys))
    for size in range(1, min(MOST_MARGIN, len(frame.decoys) - 1) + 1):
        for kept in combinations(places, size):
            axes = [axis if j in kept else _whole(axis) for j, axis in enumerate(frame.decoys)]
            margin = replace(frame, decoys=tuple(axes))
            error = np.sqrt(linear_variance(margin, x))
            most = np.minimum(most, np.maximum(linear_scores(margin, w) + z * error, margin.sum_groups(x)))
    return np.asarray(most)


def _whole(axis: Axis) -> Axis:
    """Return the axis with all its counted values as one group."""
    return replace(axis, groups=np.where(axis.grouping.of < 0, -1, 0), n_groups=1)


def _quantile(mean: Floats, sd: Floats, top: Floats, share: Floats) -> Floats:
    """Return quantiles of normal distributions truncated to [0, top], also far out in their tails."""
    from scipy.special import log_ndtr, ndtri_exp

    above, beyond = log_ndtr(mean / sd), log_ndtr((mean - top) / sd)
    left = np.logaddexp(np.log1p(-share) + above, np.log(share) + beyond)
    return np.asarray(np.clip(mean - sd * ndtri_exp(left), 0.0, top))


MARGIN_STEPS = 100
EXPECTED = 0.2
"""Loss from which on it is told."""
ENTRIES = 5_000_000
"""Sets times values up to which their information is worked out."""


def shrunk(frame: Frame, x: NDArray[np.float64], steps: Mapping[tuple[int, ...], float]) -> dict[str, float]:
    """Return pairs of drawn columns whose association is probably too weak, with the lost share of its strength.

    `steps` says how many plain steps of EM made each pair of the table's dimensions.
    """
    out = {}
    for (first, second), taken in sorted(steps.items()):
        axes = [frame.decoys[j - 1] for j in (first, second) if j > 0]
        if len(axes) < 2 or not all(isinstance(axis.design.inversion, ClosedInversion) for axis in axes):
            continue
        table = x.sum(axis=tuple(j for j in range(x.ndim) if j not in (first, second)))
        if (lost := expected_loss(axes, table, taken)) >= EXPECTED:
            out[" x ".join(axis.name for axis in axes)] = round(lost, 3)
    return out


def expected_loss(axes: Sequence[Axis], table: NDArray[np.float64], steps: float) -> float:
    """Return the share of the association of two drawn columns that so many plain EM steps from independence miss."""
    if any(len(axis.rows) * axis.d > ENTRIES for axis in axes):
        return 0.0
    (first, root), (second, other) = (_information(axis) for axis in axes)
    own = _beyond(table) / np.outer(root, other)
    square = float(np.square(own).sum())
    usual = float(np.prod([(np.trace(one) - 1) / max(len(one) - 1, 1) for one in (first, second)]))
    along = float((own * (first @ own @ second)).sum()) / square if square > 0 else usual
    return float(np.mean([(1 - min(max(part, 0.0), 1.0)) ** steps for part in (along, usual)]))


def _information(axis: Axis) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return how much a column's sets preserve differences between its values, scaled by the roots of their shares; and
    these roots."""
    weight = axis.rows.dense(axis.d)
    seen = np.bincount(axis.distinct[1], minlength=len(weight)) / max(len(axis.distinct[1]), 1)
    share = np.full(axis.d, 1 / axis.d)
    for _ in range(MARGIN_STEPS):
        post = weight * share
        post /= np.maximum(post.sum(axis=1, keepdims=True), 1e-300)
        share = seen @ post
    root = np.sqrt(np.maximum(share, 1e-9))
    return np.asarray((post * seen[:, None]).T @ post / np.outer(root, root)), root


def _beyond(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the deviation of counts from independence of rows and columns."""
    total = table.sum()
    return np.asarray(table - np.outer(table.sum(axis=1), table.sum(axis=0)) / (total if total > 0 else 1.0))
