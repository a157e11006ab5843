"""One drawn column of few records whose values are ordered: counts that are smooth along that order.

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
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from noren.estimates.counts.axes import Axis
    from noren.estimates.counts.frame import Frame

Floats = NDArray[np.float64]
WIDTHS = (1 / 30, 1 / 12)
"""Standard deviations of the normal curve, as shares of the number of values."""
STRENGTHS = (0.15, 0.5, 1.0)
AS_IT_IS = 0.5
"""Prior probability that a column is not smooth."""
LEAST = 5
"""Values that a column must have to be smooth along anything."""
MOST = 2_000
"""Values beyond which nothing is tried: K is a square table."""
RECORDS = 5_000
"""More of them tell enough, and would take long."""
STEPS = 60
TOLERANCE = 0.02
ROUNDS = 200


def smoothed(
    frame: Frame, axis: Axis, answer: Floats, folds: Sequence[NDArray[np.int32]], score: float
) -> tuple[Floats, float]:
    """The answer of a column made as smooth as held-out records ask for, and how probable smoothness is.

    `score` is the held-out log likelihood of the column as it is.
    """
    tried = [(kernel, strength) for kernel in kernels(axis) for strength in STRENGTHS]
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
    """EM with a smoothing step, from the records not held out."""
    counts = frame.counts if held is None else frame.counts - held
    x = x * (float(counts.sum()) / x.sum())
    for _ in range(STEPS):
        moved = x * frame.em_pass(x, held)[0]
        following = (1 - strength) * moved + strength * (kernel @ moved.ravel()).reshape(x.shape)
        change = float(np.abs(following - x).max())
        x = following
        if change <= TOLERANCE:
            break
    return x


def kernels(axis: Axis) -> list[Floats]:
    """How the counts of a column may be spread along the order of its values, if they have one."""
    domain = axis.statement.domain
    if not LEAST <= axis.d <= MOST or axis.d != len(domain) or not domain.is_ranked:
        return []
    return [along_ranks(axis.d, len(domain.plain), width) for width in WIDTHS]


def along_ranks(d: int, plain: int, width: float) -> Floats:
    """A normal curve around every one of the first `plain` values; the others stay as they are. Rows and columns add
    up to 1."""
    place = np.arange(plain)
    found = np.exp(-0.5 * np.square((place[:, None] - place[None, :]) / (width * plain)))
    for _ in range(ROUNDS):
        found /= found.sum(axis=0, keepdims=True)
        found /= found.sum(axis=1, keepdims=True)
    out = np.eye(d)
    out[:plain, :plain] = found
    return out
