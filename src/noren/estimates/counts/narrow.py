"""Intervals of tables with three columns and more, where most cells are too small for their own sets to tell.

A linear interval of such a cell is many times as wide as the estimate is wrong. Two things narrow its upper end. A cell
holds at most what its margins hold. And cells are about as large as they are estimated: with an exponential prior whose
mean is four times the estimate and five records more (or a fiftieth of the linear standard error: in millions of
records small estimates are wrong by more than five), the upper end is a quantile of what is then believed of the cell,
given its unbiased linear estimate. Where the linear estimate is sharp it decides alone. The lower end stays.

Such an interval holds for cells on average (of every size, in the simulations that `docs/benchmarks.md` shows), not for
one cell that was chosen because it is an exception.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from noren.estimates.counts.axes import Axis
from noren.estimates.counts.frame import Frame
from noren.estimates.counts.intervals import FISHER, LINEAR, POSTERIOR, Interval, linear_scores, linear_variance

Floats = NDArray[np.float64]
FACTOR, RECORDS = 4.0, 5.0  # of the prior's mean: chosen on Adult and the census shape
OF_ERROR = 0.02  # of the linear standard error, at least: chosen on the census shape of a million records
MOST_MARGIN = 2


def narrowed(frame: Frame, found: Interval, centre: Floats, x: Floats, level: float) -> Interval:
    """The intervals with the upper ends that margins and estimates allow; `centre` is the linear estimate."""
    count = frame.sum_groups(x)
    z = NormalDist().inv_cdf((1 + level) / 2)
    top = np.maximum(_most(frame, x, z), count + 1e-9)
    error, blurred = np.maximum(found.std_error, 1e-9), found.source == LINEAR
    share = np.full(count.shape, (1 + level) / 2)
    mean = FACTOR * count + np.maximum(RECORDS, OF_ERROR * error)
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
    """What the upper ends of single columns and pairs leave to their cells, over (slot, groups)."""
    w, most = frame.inclusions(), np.full((1,) * (len(frame.decoys) + 1), np.inf)
    places = range(len(frame.decoys))
    for size in range(1, min(MOST_MARGIN, len(frame.decoys) - 1) + 1):
        for kept in combinations(places, size):
            axes = [axis if j in kept else _whole(axis) for j, axis in enumerate(frame.decoys)]
            margin = replace(frame, decoys=tuple(axes))
            error = np.sqrt(linear_variance(margin, x))
            most = np.minimum(most, np.maximum(linear_scores(margin, w) + z * error, margin.sum_groups(x)))
    return np.asarray(most)


def _whole(axis: Axis) -> Axis:
    """The axis with all its counted values as one group."""
    return replace(axis, groups=np.where(axis.grouping.of < 0, -1, 0), n_groups=1)


def _quantile(mean: Floats, sd: Floats, top: Floats, share: Floats) -> Floats:
    """The quantiles of normal distributions that are confined to [0, top], also far out in their tails."""
    from scipy.special import log_ndtr, ndtri_exp

    above, beyond = log_ndtr(mean / sd), log_ndtr((mean - top) / sd)
    left = np.logaddexp(np.log1p(-share) + above, np.log(share) + beyond)
    return np.asarray(np.clip(mean - sd * ndtri_exp(left), 0.0, top))
