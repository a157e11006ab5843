"""How far an estimated count of exact and drawn columns may be from the truth.

Two sources. *Linear*: a record's score for a product group G is the product over the attributes of what the column's
design makes of a set (`designs.inversion`); the scores are independent and unbiased, so the variance of their sum is
known for every table, and for sums of cells without adding variances of cells. *Fisher*: the curvature of the
likelihood, J = sum_i L_i L_i' / (L_i . x)^2, gives shorter intervals, but only away from zero, where it is smooth.
The hybrid takes Fisher's where the estimate exceeds three of its standard errors and a linear one, and the linear one
elsewhere; tables of three columns and more narrow the latter (`narrow`). A count that the sets do not determine has
neither, only bounds.

By default the truth is the original table, and only the decoys are random; with `population` the table itself is a
sample of N, and sampling is added. Where a person may have m rows, every variance is multiplied by m (`inflation`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from noren.designs.inversion import stretched
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.fit import MAX_STEPS, Fit, converge
from noren.estimates.counts.frame import Frame

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
    """Standard errors and bounds over (slot, decoy groups), and which source each cell's came from."""

    std_error: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    source: NDArray[np.int8]


def linear_scores(frame: Frame, w: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums of the records' scores over (slot, groups of drawn axes), from the inclusion counts w: unbiased."""
    for j, axis in enumerate(frame.decoys, start=1):
        w = axis.scoring.sums(w, j)
    return w


def linear_variance(frame: Frame, x: NDArray[np.float64], *, population: bool = False) -> NDArray[np.float64]:
    """Var of `linear_scores` if the true table is x: (K x)_G - x_G, or (K x)_G - x_G^2 / N with sampling."""
    moment = square = frame.squared(x)
    for j, axis in enumerate(frame.decoys, start=1):
        moment = axis.scoring.second_moments(moment, j)
    error = moment - (frame.sum_groups(x) ** 2 / max(frame.n, 1) if population else frame.sum_groups(square))
    return np.maximum(error + _inclusion_variance(frame, x), 0.0)


def _inclusion_variance(frame: Frame, x: NDArray[np.float64]) -> NDArray[np.float64] | float:
    """What Monte Carlo errors of inclusion probabilities add: value v's scores are off by a mean of finitely many."""
    total: NDArray[np.float64] | float = 0.0
    for j, axis in enumerate(frame.decoys, start=1):
        if axis.design.inversion.error:
            rest = x
            for k, other in enumerate(frame.decoys, start=1):
                rest = rest if k == j else other.grouping.sum(rest, k)
            total = total + axis.scoring.noise(rest**2, j)
    return total


def likelihood_maximum(frame: Frame, found: Fit) -> NDArray[np.float64]:
    """Where EM would end: the table that intervals stand around, since one that was stopped early is still near its
    start.

    Only for one column of values that are far apart, split by exact ones. Its sets tell distant values apart, hence
    little about neighbours, and stopping early shows; elsewhere it does not, and going on would cost more than it
    gives.
    """
    if found.maximum is not None:
        return found.maximum
    split = frame.shape[0] > 1 and len(frame.decoys) == 1 and frame.decoys[0].design.threshold is not None
    if not split or frame.kept == 0:
        return found.table
    return converge(frame, np.maximum(found.table, 1e-6), frame.stopping.tolerance, MAX_STEPS).table


def fisher_variance(frame: Frame, x: NDArray[np.float64], *, population: bool = False) -> NDArray[np.float64] | None:
    """g' (J^-1 - diag(x)) g for every reported group g, or g' J^-1 g - x_G^2 / N with sampling; None if J is too big.

    J is block-diagonal over exact slots. It is inverted as S (S J S)^-1 S with S = diag(sqrt(x)): at the maximum the
    eigenvalues of S J S lie in [0, 1] and tell which share of a count's information survives the decoys.
    """
    cells = prod(frame.shape[1:])
    starred = prod((axis.d + (axis.design.p < 1)) ** 2 for axis in frame.decoys)
    if cells > FISHER_CELLS or starred * frame.shape[0] > FISHER_ENTRIES:
        return None
    pairs = sum(s.shape[0] * (s.shape[1] + 1) ** 2 for s in frame.sets)
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
    return np.maximum(out, 0.0).reshape(frame.shape[0], *sizes)


def linear_interval(
    frame: Frame,
    centre: NDArray[np.float64],
    x: NDArray[np.float64],
    *,
    level: float,
    population: bool,
    inflation: float = 1.0,
) -> Interval:
    """centre +- z se with the linear standard error at the table x, within what is possible."""
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
    """Fisher's interval where the estimate x exceeds 3 of its standard errors and a linear one, else the linear one.

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
    smooth = (count > 3 * error) & (count > wide.std_error)
    count = count if maximum is None else frame.sum_groups(maximum)
    reach = NormalDist().inv_cdf((1 + level) / 2) * np.where(smooth, error, 0.0)
    low, high = _possible(frame, count - reach, count + reach, population)
    return Interval(
        std_error=np.where(smooth, error, wide.std_error),
        low=np.where(smooth, low, wide.low),
        high=np.where(smooth, high, wide.high),
        source=np.where(smooth, FISHER, wide.source).astype(np.int8),
    )


def _possible(frame: Frame, low: NDArray, high: NDArray, population: bool) -> tuple[NDArray, NDArray]:
    """Keep bounds between 0 and the records there are: those of the exact slot, or all of them with sampling."""
    most = np.full(len(frame.slots), np.inf if frame.survey else float(frame.n)) if population else frame.records
    top = stretched(most, 0, low.ndim)
    return np.clip(low, 0.0, top), np.clip(high, 0.0, top)


def bound_lost(frame: Frame, found: Interval, *, level: float, population: bool, inflation: float = 1.0) -> Interval:
    """Where the sets do not determine a count, bounds in place of an interval: the records that must be counted, and
    those that can be. They hold whatever the table is; with sampling, up to the sampling error of either."""
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
    """Along an axis whose sets say nothing: an even share of the count, and bounds from 0 to all of it.

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
