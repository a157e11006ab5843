"""t-closeness by decoys: the largest p for which no published set changes a belief by more than t (paper 000).

Guarantee: an adversary whose prior is the table's own distribution A ends within distance t of A whatever set Z of
eta values is published. With m = A(Z) and rho the design's likelihood ratio, the posterior B obeys

    D(A, B) = (rho - 1) / (1 + m (rho - 1)) * G(Z)
    G(Z) = m (1 - m)                          equal distances (total variation)
    G(Z) = sum_i |M_i - m F_i| / (d - 1)      ordered values; M_i, F_i: mass of Z and of A on the first i values

which is at most t for every Z exactly when rho <= 1 + t / W, W = max_Z H(Z), H(Z) = G(Z) - t m(Z); that is
p = eta t / (d W + eta t), and p = 1 where W <= 0. So the whole search is one maximum per set size. (Algorithm 1 of
the paper takes the p of the most favourable set instead; other sets then exceed t.)

Where they are not too many, all sets are listed. Beyond, W is a bound from above: the mass of a set lies in one
of the ranges that its commonest values leave open, and before every place of an order at most so much. Arithmetic is on
the safe side: W is a fraction of integers with room for rounding, and p is rounded down.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb, inf, nextafter
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from noren.designs.decoys import CLOSEST_TO_ONE

Distance = Literal["equal", "ordered"]
Worst = tuple[Fraction, bool]
"""max of H(Z) over some sets, or a bound from above; whether it is no bound."""

LISTED = 4_000_000
"""Sets of one size, times the values that occur, up to which all are listed."""
HEAVY = 12
"""The commonest values, whose sets are listed where those of all values are not."""
MOST_CAPPED = 500
"""Values beyond which the bounds of an order take seconds, and those of equal distances serve."""
ROUNDING = Fraction(1, 2**48)
FLOAT_ROUNDING = 1e-12
"""Room for floating point, per unit of mass where a set is found by it, and in bounds."""


@dataclass(frozen=True)
class LargestP:
    """The largest permitted p for one set size, the H of the worst set, and whether H is only an upper bound."""

    eta: int
    p: float
    rho: float
    worst: float
    exact: bool


def largest_ps(counts: NDArray[np.int64], t: float, distance: Distance) -> list[LargestP]:
    """Return the largest p with D(A, B) <= t for every set of eta values, for eta = 1 .. d - 1."""
    counts = _check_counts(counts, t, distance)
    d = counts.size
    limit = Fraction(t)
    if t >= 1 or d == 1:  # no two distributions are further apart than 1
        return [LargestP(eta, 1.0, inf, 0.0, True) for eta in range(1, d)]
    worst = _with_absent_values(_worst(counts, limit, distance), d)
    return [_largest(eta, d, limit, *worst[eta]) for eta in range(1, d)]


def _largest(eta: int, d: int, t: Fraction, worst: Fraction, exact: bool) -> LargestP:
    """Return p = eta t / (d W + eta t) rounded down to a float, and its rho."""
    if worst <= 0:
        return LargestP(eta, 1.0, inf, float(worst), exact)
    largest = eta * t / (d * worst + eta * t)
    p = min(float(largest), CLOSEST_TO_ONE)
    if p > largest:  # Python compares a float with a fraction exactly
        p = nextafter(p, 0.0)
    rho = 1 + p * d / (eta * (1 - p))
    return LargestP(eta, p, rho, float(worst), exact)


def _worst(counts: NDArray[np.int64], t: Fraction, distance: Distance) -> list[Worst]:
    """Return max H(Z) over all sets of j occurring values, j = 0 .. k, or an upper bound if they are too many."""
    present, total, limit = np.flatnonzero(counts), int(counts.sum()), float(t)
    k = present.size
    listed = [comb(k, j) * k <= LISTED for j in range(k + 1)]
    if all(listed):
        return [(_worst_listed(counts, present, t, distance, j), True) for j in range(k + 1)]
    near = nearest_sums(counts[present], total * (1 - limit) / 2)
    caps = _Caps(counts, present, limit) if distance == "ordered" and 1 < k <= MOST_CAPPED else None
    out = []
    for j in range(k + 1):
        if listed[j]:
            out.append((_worst_listed(counts, present, t, distance, j), True))
            continue
        # in an order no value is further than 1 from another, so that the bound of equal distances serves as well
        height = max(s / total * (1 - limit - s / total) for s in near[j])
        height = height if caps is None or not j else min(height, caps.bound(j))
        out.append((Fraction(height + FLOAT_ROUNDING), False))
    return out


def _worst_listed(
    counts: NDArray[np.int64], present: NDArray[np.int64], t: Fraction, distance: Distance, j: int
) -> Fraction:
    """Return max H(Z) over the sets of j occurring values; floats find the set, integers evaluate it exactly."""
    total, k = int(counts.sum()), present.size
    sets = np.array(list(combinations(range(k), j)), np.int64).reshape(comb(k, j), j)
    shares = counts[present] / total
    mass = shares[sets].sum(axis=1)
    gap = mass * (1 - mass)
    if distance == "ordered" and k > 1:
        inside = np.zeros((len(sets), k))
        np.put_along_axis(inside, sets, 1.0, axis=1)
        ahead = np.cumsum(inside * shares, axis=1)[:, :-1] - mass[:, None] * np.cumsum(shares)[:-1]
        gap = np.abs(ahead) @ np.diff(present) / (counts.size - 1)
    members = present[sets[int((gap - float(t) * mass).argmax())]]
    share = Fraction(int(counts[members].sum()), total)
    height = set_gap(counts, members, distance) - t * share
    return height + share * ROUNDING if height > 0 else height


def set_gap(counts: NDArray[np.int64], members: NDArray[np.int64], distance: Distance) -> Fraction:
    """Return G(Z) exactly."""
    total, mass = int(counts.sum()), int(counts[members].sum())
    if distance == "equal":
        return Fraction(mass * (total - mass), total * total)
    inside = np.zeros(counts.size, bool)
    inside[members] = True
    m_i, f_i = np.cumsum(np.where(inside, counts, 0)).tolist(), np.cumsum(counts).tolist()
    gaps = sum(abs(m * total - mass * f) for m, f in zip(m_i, f_i, strict=True))
    return Fraction(gaps, total * total * (counts.size - 1))


def nearest_sums(counts: NDArray[np.int64], target: float) -> list[tuple[float, ...]]:
    """Return for j = 0 .. k the sums of j counts closest to the target, below and above.

    The commonest counts are in or out, in every way; the others add something between their least and their most.
    """
    ascending = np.sort(counts).astype(np.float64)
    heavy = ascending[-HEAVY:]
    light = np.concatenate([[0.0], np.cumsum(ascending[:-HEAVY])])
    sets = np.arange(1 << heavy.size)
    own = sum((((sets >> i) & 1) * one for i, one in enumerate(heavy.tolist())), np.zeros(sets.size))
    size = np.bitwise_count(sets).astype(np.int64)
    out = []
    for j in range(counts.size + 1):
        fits = (size <= j) & (j - size < light.size)
        others = j - size[fits]
        low, high = own[fits] + light[others], own[fits] + light[-1] - light[light.size - 1 - others]
        near = [
            min(target, float(high[low <= target].max(initial=-np.inf))),
            float(low.min(initial=np.inf, where=low >= target)),
        ]
        out.append(tuple(s for s in near if np.isfinite(s)))
    return out


class _Caps:
    """Upper bounds of H for sets of j values in an order.

    A set of j values puts at most U_i, the j largest masses, on the first i values and at most V_i on the others:
    |M_i - m F_i| <= max(min(m, U_i) - m F_i, m F_i - max(0, m - V_i)), to be summed over i and maximised over m.
    Every kink of a term at U_i or V_i bends down; where the two arguments of max cross it bends up, and a function
    is never largest only there. So the candidates are the U_i, the V_i and the ends of the range of m.
    """

    def __init__(self, counts: NDArray[np.int64], present: NDArray[np.int64], t: float) -> None:
        self.d, self.t = counts.size, t
        self.steps = np.diff(present)
        mass, k = counts[present] / counts.sum(), present.size
        self.below = np.cumsum(mass)[:-1]
        self.lightest, self.heaviest = np.cumsum(np.sort(mass)), _largest_sums(mass, k)
        self.before = np.stack([_largest_sums(mass[:i], k) for i in range(1, k)])
        self.after = np.stack([_largest_sums(mass[i:], k) for i in range(1, k)])

    def bound(self, j: int) -> float:
        low, high = self.lightest[j - 1], self.heaviest[j - 1]
        u, v = self.before[:, j - 1], self.after[:, j - 1]
        m = np.unique(np.clip(np.concatenate([u, v, [low, high]]), low, high))[:, None]
        gaps = np.maximum(np.minimum(m, u) - m * self.below, m * self.below - np.maximum(0.0, m - v))
        return float((gaps @ self.steps / (self.d - 1) - self.t * m[:, 0]).max())


def _largest_sums(masses: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """Return the sum of the j largest numbers, j = 1 .. k; of all if there are fewer."""
    sums = np.full(k, masses.sum())
    sums[: masses.size] = np.cumsum(np.sort(masses)[::-1])
    return sums


def _with_absent_values(by_size: list[Worst], d: int) -> dict[int, Worst]:
    """Extend sets of j occurring values to eta values with absent values, which add no mass."""
    k = len(by_size) - 1
    absent = d - k
    return {
        eta: max(by_size[max(0, eta - absent) : min(k, eta) + 1], key=lambda found: found[0]) for eta in range(1, d)
    }


def _check_counts(counts: NDArray[np.int64], t: float, distance: Distance) -> NDArray[np.int64]:
    counts = np.asarray(counts)
    if counts.ndim != 1 or counts.dtype.kind not in "iu" or not counts.size:
        raise ValueError("counts must be a one-dimensional array of integers, one per value of the domain.")
    if int(counts.min()) < 0 or not counts.any():
        raise ValueError("counts must be at least 0, and some value must occur.")
    if not t > 0:
        raise ValueError(f"t must be above 0. Got {t} instead.")
    if distance not in ("equal", "ordered"):
        raise ValueError(f"distance must be 'equal' or 'ordered'. Got {distance!r} instead.")
    return counts.astype(np.int64, copy=False)
