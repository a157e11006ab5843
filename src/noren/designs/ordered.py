"""The worst set for ordered closeness: exact where the domain or the set is small, else a bound from above.

Works on the k values that occur. Between two of them M and F stand still, so such places share one term, weighted
by `steps`; an absent value only fills a set up.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
from numpy.typing import NDArray

SIGN_LIMIT = 24  # occurring values; 2^23 sign vectors take about a second, each further value doubles that
TRIAL_LIMIT = 100_000_000  # sets times values that may be tried one by one: about a tenth of a second per size
CAP_LIMIT = 250  # occurring values; beyond, the caps that know the size of the set cost too much
_KERNEL_SLACK = Fraction(1, 2**48)  # rounding of the kernels, per unit of mass
_FLOAT_SLACK = 1e-12  # rounding of the bounds, which are evaluated in floating point

Worst = tuple[Fraction, str]


def worst_ordered(counts: NDArray[np.int64], t: Fraction, equal: list[Worst]) -> list[Worst]:
    """max of H(Z) = G(Z) - t m(Z) over sets of j occurring values, j = 0 .. k, or a bound from above.

    `equal` is the same for equal distances: never smaller, since no value is further than 1 from another.
    """
    present = np.flatnonzero(counts)
    k = present.size
    if k <= SIGN_LIMIT:
        return _by_signs(counts, present, t)
    caps = _Caps(counts, present, float(t))
    worst: list[Worst] = [(Fraction(0), "exact")]
    for j in range(1, k + 1):
        if comb(k, j) * k <= TRIAL_LIMIT:
            worst.append(_by_trial(counts, present, t, j))
            continue
        by_caps = Fraction(caps.bound(j) + _FLOAT_SLACK)
        if by_caps < equal[j][0]:
            worst.append((by_caps, "safe bound: the largest gap at every place of the order"))
        else:
            worst.append((equal[j][0], "safe bound: the equal-distance value"))
    return worst


def ordered_gap(counts: NDArray[np.int64], members: NDArray[np.int64]) -> Fraction:
    """G(Z) of the ordered distance, exactly: sum_i |M_i - m F_i| / (d - 1) in integers."""
    inside = np.zeros(counts.size, bool)
    inside[members] = True
    m_i = np.cumsum(np.where(inside, counts, 0)).tolist()
    f_i = np.cumsum(counts).tolist()
    total, mass = f_i[-1], m_i[-1]
    gaps = sum(abs(m * total - mass * f) for m, f in zip(m_i, f_i, strict=True))
    return Fraction(gaps, total * total * (counts.size - 1))


def mass_bound(
    below: NDArray[np.float64], steps: NDArray[np.int64], d: int, t: float, *, low: float, high: float
) -> float:
    """A bound from above of H(Z) over all sets with low <= m(Z) <= high, whatever their size.

    Z puts max(0, m + F_i - 1) <= M_i <= min(m, F_i) on the first i values, and the further end of that interval is
    min(u, f_i) - u f_i away from m F_i, with u = min(m, 1 - m) and f_i = min(F_i, 1 - F_i).
    The sum over i is linear in m between the points f_i, 1 - f_i and 1/2, so its maximum lies on one of them.
    """
    f = np.minimum(below, 1 - below)
    order = np.argsort(f)
    f, weight = f[order], steps[order].astype(float)
    m = np.unique(np.clip(np.concatenate([f, 1 - f, [0.5, low, high]]), low, high))
    u = np.minimum(m, 1 - m)
    smaller = np.searchsorted(f, u)
    mass = np.concatenate([[0.0], np.cumsum(f * weight)])
    places = np.concatenate([[0.0], np.cumsum(weight)])
    gaps = mass[smaller] + (places[-1] - places[smaller]) * u - u * mass[-1]
    return float((gaps / (d - 1) - t * m).max())


class _Caps:
    """Bounds from above of H for sets of j values.

    A set of j values puts at most U_i, the j largest masses, on the first i values and at most V_i on the others:
    |M_i - m F_i| <= max(min(m, U_i) - m F_i, m F_i - max(0, m - V_i)), to be summed over i and maximised over m.
    Every kink of a term at U_i or V_i bends down; where the two arguments of max cross it bends up, and a function
    is never largest only there. So the candidates are the U_i, the V_i and the ends of the range of m.
    """

    def __init__(self, counts: NDArray[np.int64], present: NDArray[np.int64], t: float) -> None:
        self.d, self.t = counts.size, t
        self.steps = np.diff(present)
        self.mass = counts[present] / counts.sum()
        self.below = np.cumsum(self.mass)[:-1]
        ascending = np.sort(self.mass)
        self.lightest = np.cumsum(ascending)
        self.heaviest = np.minimum(1.0, np.cumsum(ascending[::-1]))
        if (k := present.size) <= CAP_LIMIT:
            self.before = np.stack([_largest_sums(self.mass[:i], k) for i in range(1, k)])
            self.after = np.stack([_largest_sums(self.mass[i:], k) for i in range(1, k)])

    def bound(self, j: int) -> float:
        low, high = self.lightest[j - 1], self.heaviest[j - 1]
        if self.mass.size > CAP_LIMIT:
            return mass_bound(self.below, self.steps, self.d, self.t, low=low, high=high)
        u, v = self.before[:, j - 1], self.after[:, j - 1]
        m = np.unique(np.clip(np.concatenate([u, v, [low, high]]), low, high))[:, None]
        gaps = np.maximum(np.minimum(m, u) - m * self.below, m * self.below - np.maximum(0.0, m - v))
        return float((gaps @ self.steps / (self.d - 1) - self.t * m[:, 0]).max())


def _largest_sums(masses: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """Sum of the j largest, j = 1 .. k; where there are fewer, the sum of all."""
    sums = np.full(k, masses.sum())
    sums[: masses.size] = np.cumsum(np.sort(masses)[::-1])
    return sums


def _by_signs(counts: NDArray[np.int64], present: NDArray[np.int64], t: Fraction) -> list[Worst]:
    """All j at once over sign vectors: the kernel finds the set, integers weigh it."""
    from noren.designs.kernels import ordered_worst

    k = present.size
    occurring = np.ascontiguousarray(counts[present], dtype=np.int64)
    steps = np.diff(present).astype(np.int64)
    _, signs = ordered_worst(occurring, steps, counts.size, float(t))
    total = int(occurring.sum())
    worst = []
    for j in range(k + 1):
        sign = 1 - 2 * ((int(signs[j]) >> np.arange(k - 1)) & 1)
        s_of = np.concatenate([np.cumsum((sign * steps)[::-1])[::-1], [0]])
        middle = float(occurring @ s_of) / total
        score = occurring / total * ((s_of - middle) / (counts.size - 1) - float(t))
        worst.append(_weighed(counts, present[np.argsort(-score, kind="stable")[:j]], t))
    return worst


def _by_trial(counts: NDArray[np.int64], present: NDArray[np.int64], t: Fraction, j: int) -> Worst:
    """All sets of j values, one by one."""
    from noren.designs.kernels import ordered_worst_of_size

    members = np.empty(j, np.int64)
    steps = np.diff(present).astype(np.int64)
    ordered_worst_of_size(counts[present].astype(np.int64), steps, counts.size, float(t), members)
    return _weighed(counts, present[members], t)


def _weighed(counts: NDArray[np.int64], members: NDArray[np.int64], t: Fraction) -> Worst:
    """H of the set that a kernel found; one that ties with it within rounding may stand a hair higher."""
    mass = Fraction(int(counts[members].sum()), int(counts.sum()))
    height = ordered_gap(counts, members) - t * mass
    return (height + mass * _KERNEL_SLACK if height > 0 else height), "exact"
