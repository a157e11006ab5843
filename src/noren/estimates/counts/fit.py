"""The likelihood estimate of exact and drawn columns: EM on every record's whole sets.

One drawn column alone is brought to its maximum and regularised (below). Several together have many cells, and their
maximum fits noise: EM starts from independence of the columns and goes on for as long as it predicts records that were
held out, then as far on all records (`held_out`). Tables of one drawn column by exact ones are treated like the latter:
exact columns split the records, and small slices need the others' help.

One drawn column with little information: a Dirichlet prior around equal shares, whose weight is estimated.

Few records, or sets that say little of the value, leave the maximum of the likelihood far from the table: it fits the
decoys. A prior of weight a adds a / d records to every value in each step of EM. What it does depends on how much a
record tells: with the information I that a set holds of a value (0 to 1, at even shares) the estimate is drawn towards
even by

    s = a / (a + n I)

The design's own variance V says which part of the unbiased estimate's distance from even is noise:
s_0 = V / (V + signal), where the signal is what the distance exceeds V by, and, as far as that is itself uncertain,
what it is among all distributions on average. Where noise is less than LITTLE of the distance, nothing is regularised.

A prior around even shares is wrong for some columns, and stopping `bayes` early is wrong for others. Of uniform decoys
the answer is the mean of the two: on average it is as near as the better one, and where one of them fails, half as far
off.

Neighbouring ages, incomes or dates are rarely as different as decoys make them look. Of few records whose values are
ordered, EM with a smoothing step after each of its own (EMS, Silverman et al. 1990),

    x <- (1 - t) y + t K y,      y = x a(x)

keeps near values alike: K spreads a count over its neighbours, in proportion to a normal curve of their ranks, and
keeps even shares and the total. Along hierarchies nothing was gained (measured).

Held-out records choose: every s near s_0, and every K and t, is scored by the log likelihood of four folds, and the
answer is the mean of their tables, weighted by that and by a prior of one half for not smoothing. Columns that are
rough or heaped say no.

Intervals stay where they were, around the unbiased estimate and the maximum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from noren.designs.inversion import Groups
from noren.estimates.counts.axes import Axis
from noren.estimates.counts.bayes import bayes
from noren.estimates.counts.frame import Frame, prepare
from noren.estimates.counts.held_out import DRAWN, by_held_out, each, folds_of
from noren.estimates.counts.tuples import MAX_STEPS, Ascent, Fit, Floats, Progress, Tuples, converge

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


def fit(
    frame: Frame,
    progress: Progress | None = None,
    *,
    eps: float = 1.0,
    tolerance: float | None = None,
    max_steps: int = MAX_STEPS,
) -> Fit:
    """Return the likelihood estimate; with a tolerance its maximum, without regularisation."""
    if not frame.decoys:
        return Fit(frame.inclusions, 0, {"stopping": "nothing to estimate"})
    if frame.kept == 0:
        return Fit(np.zeros(frame.shape), 0, {"stopping": "no records"})
    rule = DRAWN if tolerance is None else replace(DRAWN, tolerance=tolerance, still=tolerance)
    if not frame.is_single:
        alone = [prepare([axis], frame.survey) for axis in frame.decoys] if tolerance is None else []
        whole = [j for j, one in enumerate(alone) if one.kept == frame.kept]
        found = each(fit, [alone[j] for j in whole], len(frame.tuples))
        answers = {j + 1: one.table[0] for j, one in zip(whole, found, strict=True)}
        return by_held_out(frame.tuples, rule, progress, max_steps, answers)
    start = np.full(frame.shape, frame.kept / frame.shape[1])
    top = converge(frame.tuples, start, rule.tolerance, max_steps, progress)
    return regularised(frame, top) if tolerance is None and frame.survey is None else top


def regularised(frame: Frame, found: Fit) -> Fit:
    """Return the regularised estimate of one drawn column, given its maximum likelihood estimate."""
    axis, records = frame.decoys[0], frame.tuples
    noise = noise_share(frame, axis)
    if noise is None or noise < LITTLE:
        return found
    shares = GRID[np.abs(GRID - noise) <= REACH]
    weights = prior_weights(shares, information(axis), frame.kept).tolist()
    kernels = smoothing_kernels(axis) if frame.kept <= RECORDS else []
    ways: list[Callable[[Floats], Floats]] = [partial(drawn_to_even, records, found.table, w) for w in weights]
    ways += [partial(smooth_fit, records, kernel, strength) for kernel in kernels for strength in STRENGTHS]
    near = np.exp(-0.5 * np.square((shares - noise) / NEAR))
    smooth = np.full(len(ways) - len(shares), AS_IT_IS / max(len(ways) - len(shares), 1))
    score = np.log(np.concatenate([AS_IT_IS * near / near.sum(), smooth]))
    folds = [held for held in folds_of(records.counts).counts.T if held.any()]
    for i, way in enumerate(ways):
        for held in folds:
            x = way(records.counts - held)
            score[i] += records.em_pass(x / x.sum(), held)[2]
    likely = np.exp(score - score.max())
    likely /= likely.sum()
    tables = [part * _last(records, way(records.counts)) for part, way in zip(likely, ways, strict=True)]
    plain = float(likely[: len(shares)].sum())
    mean = _beside_bayes(frame, axis, np.sum(tables[: len(shares)], axis=0)) + np.sum(tables[len(shares) :], axis=0)
    facts = found.diagnostics | {"drawn_to_even": float(likely[: len(shares)] @ shares) / plain, "folds": len(folds)}
    facts |= {"smooth": 1 - plain} if kernels else {}
    return replace(found, table=mean, diagnostics=facts, maximum=found.table)


def _last(records: Tuples, x: Floats) -> Floats:
    """Return the table after one plain step: the table's own counts, not the population's."""
    return np.asarray(x * records.em_pass(x)[0])


def _beside_bayes(frame: Frame, axis: Axis, table: Floats) -> Floats:
    """Return the mean of the table and `bayes`, whose stop is known for uniform decoys."""
    if axis.design.threshold is not None:
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
    distance = float(np.square(axis.design.inversion.invert(frame.inclusions, 1) - even).sum())
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


def prior_weights(drawn: Floats, known: float, n: int) -> Floats:
    """Return the weight a, in records, that shrinks the estimate by that share; infinite for 1."""
    return np.where(drawn < 1, drawn * n * known / np.maximum(1 - drawn, 1e-12), np.inf)


def drawn_to_even(records: Tuples, x: Floats, weight: float, counts: Floats) -> Floats:
    """Return the table of largest posterior density under a prior of this weight, if the tuples occur so often."""
    n, d = float(counts.sum()), x.size
    if weight == np.inf:
        return np.full_like(x, n / d)
    share, out = weight / d, records.counts - counts
    walk = Ascent(np.maximum(x * (n / x.sum()), 1e-6 * n / d), TOLERANCE, STEPS)
    while not walk.has_ended:
        acc, sums, _ = records.em_pass(walk.x, out)
        value = float((counts * np.log(np.maximum(sums, 1e-300))).sum())
        value += share * float(np.log(np.maximum(walk.x, 1e-300)).sum())
        walk.take((walk.x * acc + share) * (n / (n + weight)), value)
    return walk.x


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


def smooth_fit(records: Tuples, kernel: Floats, strength: float, counts: Floats) -> Floats:
    """Run EM with a smoothing step, if the tuples occur so often."""
    x, out = np.full(records.shape, counts.sum() / kernel.shape[0]), records.counts - counts
    for _ in range(SMOOTH_STEPS):
        moved = x * records.em_pass(x, out)[0]
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
