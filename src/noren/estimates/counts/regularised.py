"""One drawn column with little information: a Dirichlet prior around equal shares, whose weight is estimated.

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

One drawn column of few records whose values are ordered: counts that are smooth along that order.

Neighbouring ages, incomes or dates are rarely as different as decoys make them look. EM with a smoothing step after
each of its own (EMS, Silverman et al. 1990),

    x <- (1 - t) y + t K y,      y = x a(x)

keeps near values alike: K spreads a count over its neighbours, in proportion to a normal curve of their ranks, and
keeps even shares and the total. Which K and t, if any, held-out records say: each, and the column's own answer without
it, is scored by the log likelihood of four folds, and the answer is their mean, weighted by that and by a prior of one
half for not smoothing. Columns that are rough or heaped say no. Along hierarchies nothing was gained (measured).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from noren.designs.inversion import Groups
from noren.estimates.counts.fit import Fit, ascend
from noren.estimates.counts.held_out import folds_of

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
    """Return the regularised estimate of one drawn column, given its maximum likelihood estimate."""
    axis = frame.decoys[0]
    noise = noise_share(frame, axis)
    if noise is None or noise < LITTLE:
        return found
    tried = GRID[np.abs(GRID - noise) <= REACH]
    weights = prior_weights(tried, information(axis), frame.kept)
    folds = [held for held in folds_of(frame.counts).counts.T if held.any()]
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
    if frame.kept <= RECORDS and smoothing_kernels(axis):
        weight = prior_weights(np.array([drawn]), information(axis), frame.kept)
        as_it_is = [_fitted(frame, found.table, weight, held)[0] for held in folds]
        own = sum(frame.em_pass(x / x.sum(), held)[2] for x, held in zip(as_it_is, folds, strict=True))
        mean, facts["smooth"] = smoothed(frame, axis, mean, folds, own)
    return replace(found, table=mean, diagnostics=facts, maximum=found.table)


def _beside_bayes(frame: Frame, axis: Axis, table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of the table and `bayes`, whose stop is known for uniform decoys and unweighted records."""
    from noren.estimates.counts.estimators import bayes

    if axis.design.threshold is not None or frame.survey is not None:
        return table
    stopped = bayes(frame).table
    return np.asarray((1 - STOPPED) * table + STOPPED * stopped * (table.sum() / max(float(stopped.sum()), 1e-300)))


def noise_share(frame: Frame, axis: Axis) -> float | None:
    """Return which part of the linear estimate's squared distance from equal shares is noise; None if the sets do not
    determine the counts."""
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
    """Return the share of information about a value that its set preserves under equal frequencies; 1 for an exact
    value."""
    rows, d = axis.rows, axis.d
    weight = rows.weight.reshape(len(rows), -1)
    rest = d - weight.shape[1]
    total = weight.sum(axis=1) + rows.floor * rest
    square = (np.square(weight).sum(axis=1) + rows.floor**2 * rest) / total**2
    return max((d * float(square[axis.distinct[1]].mean()) - 1) / (d - 1), 1e-9)


def prior_weights(drawn: NDArray[np.float64], known: float, n: int) -> NDArray[np.float64]:
    """Return the weight a, in records, that shrinks the estimate by that share; infinite for 1."""
    return np.where(drawn < 1, drawn * n * known / np.maximum(1 - drawn, 1e-12), np.inf)


def _fitted(
    frame: Frame, x: NDArray[np.float64], weights: NDArray[np.float64], held: NDArray[np.int32] | None
) -> list[NDArray[np.float64]]:
    """Return the tables of largest posterior density for priors of increasing weight, from the records not held out."""
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


Floats = NDArray[np.float64]
WIDTHS = (1 / 30, 1 / 12)
"""Standard deviations of the normal curve, as shares of the number of values."""
STRENGTHS = (0.15, 0.5, 1.0)
AS_IT_IS = 0.5
"""Prior probability that a column is not smooth."""
LEAST_VALUES = 5
"""Values that a column must have to be smooth along anything."""
MOST_VALUES = 2_000
"""Values beyond which nothing is tried: K is a square table."""
RECORDS = 5_000
"""More of them tell enough, and would take long."""
SMOOTH_STEPS = 60
BALANCE_ROUNDS = 200


def smoothed(
    frame: Frame, axis: Axis, answer: Floats, folds: Sequence[NDArray[np.int32]], score: float
) -> tuple[Floats, float]:
    """Smooth the answer of a column as much as held-out records support, and return the probability of smoothness.

    `score` is the held-out log likelihood of the column as it is.
    """
    tried = [(kernel, strength) for kernel in smoothing_kernels(axis) for strength in STRENGTHS]
    if not tried or not folds:
        return answer, 0.0
    start = np.full(answer.shape, frame.kept / answer.size)
    scores = [score + np.log(AS_IT_IS)]
    for kernel, strength in tried:
        found = np.log((1 - AS_IT_IS) / len(tried))
        for held in folds:
            x = smooth_fit(frame, start, kernel, strength, held)
            found += frame.em_pass(x / x.sum(), held)[2]
        scores.append(found)
    likely = np.exp(np.array(scores) - max(scores))
    likely /= likely.sum()
    out = likely[0] * answer
    for (kernel, strength), part in zip(tried, likely[1:], strict=True):
        if part > 1e-3:
            x = smooth_fit(frame, start, kernel, strength, None)
            out = out + part * x * frame.em_pass(x)[0]
    return np.asarray(out * (answer.sum() / out.sum())), float(1 - likely[0])


def smooth_fit(frame: Frame, x: Floats, kernel: Floats, strength: float, held: NDArray[np.int32] | None) -> Floats:
    """Run EM with a smoothing step on the records not held out."""
    counts = frame.counts if held is None else frame.counts - held
    x = x * (float(counts.sum()) / x.sum())
    for _ in range(SMOOTH_STEPS):
        moved = x * frame.em_pass(x, held)[0]
        following = (1 - strength) * moved + strength * (kernel @ moved.ravel()).reshape(x.shape)
        change = float(np.abs(following - x).max())
        x = following
        if change <= TOLERANCE:
            break
    return x


def smoothing_kernels(axis: Axis) -> list[Floats]:
    """Return the kernels that spread the counts of a column along the order of its values, if it is ordered."""
    domain = axis.statement.domain
    if not LEAST_VALUES <= axis.d <= MOST_VALUES or axis.d != len(domain) or not domain.is_ranked:
        return []
    return [along_ranks(axis.d, len(domain.plain), width) for width in WIDTHS]


def along_ranks(d: int, plain: int, width: float) -> Floats:
    """Return a normal curve around every one of the first `plain` values; the others stay unchanged. Rows and columns
    sum to 1."""
    place = np.arange(plain)
    found = np.exp(-0.5 * np.square((place[:, None] - place[None, :]) / (width * plain)))
    for _ in range(BALANCE_ROUNDS):
        found /= found.sum(axis=0, keepdims=True)
        found /= found.sum(axis=1, keepdims=True)
    out = np.eye(d)
    out[:plain, :plain] = found
    return out
