"""One drawn column at low signal: a Dirichlet prior around even shares, as heavy as the records themselves ask for.

Few records, or sets that say little of the value, leave the maximum of the likelihood far from the table: it fits the
decoys. A prior of weight a adds a / d records to every value in each step of EM. What it does depends on how much a
record tells: with the information I that a set holds of a value (0 to 1, at even shares) the estimate is drawn towards
even by

    s = a / (a + n I)

How much that should be is judged twice. The design's own variance V says which part of the unbiased estimate's distance
from even is noise: s_0 = V / (V + signal), where the signal is what the distance exceeds V by, and, as far as that is
itself uncertain, what it is among all distributions on average. And held-out records score every s near it. The
estimate is the mean over s, weighted by both. Where noise is less than LITTLE of the distance, nothing is smoothed.

A prior around even shares is wrong for some columns, and stopping `bayes` early is wrong for others. Of uniform decoys
the answer is the mean of the two: on average it is as near as the better one, and where one of them fails, half as far
off.

A column whose values are ordered may be smooth along them as well (`smoothing`).

Intervals stay where they were, around the unbiased estimate and the maximum.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from noren.designs.inversion import Groups
from noren.estimates.counts.ascent import ascend
from noren.estimates.counts.fit import Fit, shuffled_folds
from noren.estimates.counts.smoothing import RECORDS, kernels, smoothed

if TYPE_CHECKING:
    from noren.estimates.counts.axes import Axis
    from noren.estimates.counts.frame import Frame

LITTLE = 0.02
GRID = np.linspace(0, 1, 11)
NEAR = 0.1
"""Standard deviation of s around s_0 before records are held out."""
REACH = 0.25
"""Further from s_0 nothing is tried."""
WIDE = 1.0
"""How uncertain the average signal is, as a multiple of itself."""
STOPPED = 0.5
"""Part of the answer that `bayes` gives, stopped where the paper stops it."""
STEPS = 200
TOLERANCE = 0.02


def regularised(frame: Frame, found: Fit) -> Fit:
    """The estimate of one drawn column, given its maximum likelihood."""
    axis = frame.decoys[0]
    noise = noise_share(frame, axis)
    if noise is None or noise < LITTLE:
        return found
    tried = GRID[np.abs(GRID - noise) <= REACH]
    weights = prior_weights(tried, information(axis), frame.kept)
    folds = [held for held in shuffled_folds(frame.counts) if 0 < held.sum() < frame.kept]
    score = -0.5 * ((tried - noise) / NEAR) ** 2
    for held in folds:
        for i, x in enumerate(_fitted(frame, found.table, weights, held)):
            score[i] += frame.em_pass(x / x.sum(), held)[2]
    likely = np.exp(score - score.max())
    likely /= likely.sum()
    tables = _fitted(frame, found.table, weights, None)
    mean = np.sum([share * x * frame.em_pass(x)[0] for share, x in zip(likely, tables, strict=True)], axis=0)
    mean = _beside_bayes(frame, axis, mean)
    drawn = float(likely @ tried)
    facts = found.diagnostics | {"drawn_to_even": drawn, "noise_share": noise, "folds": len(folds)}
    if frame.kept <= RECORDS and kernels(axis):
        weight = prior_weights(np.array([drawn]), information(axis), frame.kept)
        as_it_is = [_fitted(frame, found.table, weight, held)[0] for held in folds]
        own = sum(frame.em_pass(x / x.sum(), held)[2] for x, held in zip(as_it_is, folds, strict=True))
        mean, facts["smooth"] = smoothed(frame, axis, mean, folds, own)
    return replace(found, table=mean, diagnostics=facts, maximum=found.table)


def _beside_bayes(frame: Frame, axis: Axis, table: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of the table and `bayes`. Its stop is known for uniform decoys and records that count once."""
    from noren.estimates.counts.estimators import bayes

    if axis.design.threshold is not None or frame.survey is not None:
        return table
    stopped = bayes(frame).table
    return (1 - STOPPED) * table + STOPPED * stopped * (table.sum() / max(float(stopped.sum()), 1e-300))


def noise_share(frame: Frame, axis: Axis) -> float | None:
    """Which part of the linear estimate's squared distance from even shares is noise; None if the sets do not determine
    the counts."""
    d, n = axis.d, frame.kept
    if axis.design.inversion.undetermined or d < 2 or not n:
        return None
    even = np.full(frame.shape, n / d)
    scoring = axis.design.inversion.scoring(Groups(np.arange(d, dtype=np.int64), d, is_identity=True))
    variance = float((scoring.second_moments(even, 1) - even).sum())
    distance = float(np.square(axis.design.inversion.invert(frame.inclusions(), 1) - even).sum())
    found, spread = max(distance - variance, 0.0), variance * float(np.sqrt(2 / (d - 1)))
    usual = n**2 * (d - 1) / (d * (d + 1))
    weight = spread**2 / (spread**2 + (WIDE * usual) ** 2)
    signal = (1 - weight) * found + weight * usual
    return variance / max(variance + signal, 1e-300)


def information(axis: Axis) -> float:
    """How much of a value its set tells where all values are as likely: 1 if all of it."""
    rows, d = axis.rows, axis.d
    weight = rows.weight.reshape(len(rows), -1)
    rest = d - weight.shape[1]
    total = weight.sum(axis=1) + rows.floor * rest
    square = (np.square(weight).sum(axis=1) + rows.floor**2 * rest) / total**2
    return max((d * float(square[axis.distinct[1]].mean()) - 1) / (d - 1), 1e-9)


def prior_weights(drawn: NDArray[np.float64], known: float, n: int) -> NDArray[np.float64]:
    """The weight a, in records, that draws the estimate that far; without limit for 1."""
    return np.where(drawn < 1, drawn * n * known / np.maximum(1 - drawn, 1e-12), np.inf)


def _fitted(
    frame: Frame, x: NDArray[np.float64], weights: NDArray[np.float64], held: NDArray[np.int32] | None
) -> list[NDArray[np.float64]]:
    """The tables of largest posterior density for priors of rising weight, from the records not held out."""
    counts = frame.counts if held is None else frame.counts - held
    n, d = float(counts.sum()), x.size
    out = []
    for weight in weights.tolist():
        if weight == np.inf:
            out.append(np.full_like(x, n / d))
            continue
        x, share = x * (n / x.sum()), weight / d

        def step(table: NDArray[np.float64], share: float = share, weight: float = weight) -> tuple[NDArray, float]:
            acc, sums, _ = frame.em_pass(table, held)
            value = float((counts * np.log(np.maximum(sums, 1e-300))).sum())
            value += share * float(np.log(np.maximum(table, 1e-300)).sum()) if share else 0.0
            return (table * acc + share) * (n / (n + weight)), value

        x = ascend(step, np.maximum(x, 1e-6 * n / d), TOLERANCE, STEPS)[0]
        out.append(x)
    return out
