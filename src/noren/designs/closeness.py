"""t-closeness by decoys: the largest coin p for which *no* published set moves a belief further than t (paper 000).

Guarantee: an adversary whose prior is the table's own distribution A ends within distance t of A whatever set Z of
eta values is published. With m = A(Z) and rho the design's likelihood ratio, the posterior B obeys

    D(A, B) = (rho - 1) / (1 + m (rho - 1)) * G(Z)
    G(Z) = m (1 - m)                          equal distances (total variation)
    G(Z) = sum_i |M_i - m F_i| / (d - 1)      ordered values; M_i, F_i: mass of Z and of A on the first i values

which is at most t for every Z exactly when rho <= 1 + t / W, W = max_Z H(Z), H(Z) = G(Z) - t m(Z); that is
p = eta t / (d W + eta t), and p = 1 where W <= 0. So the whole search is one maximum per set size. (Algorithm 1 of
the paper takes the p of the most favourable set instead; other sets then exceed t.)

Arithmetic is on the safe side: W is a fraction of integers or a bound from above, and p is rounded down.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf, nextafter
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from noren.designs.decoys import CLOSEST_TO_ONE, DecoyDesign
from noren.designs.ordered import worst_ordered
from noren.designs.subset_sums import Reach, nearest_sums
from noren.errors import PolicyError, Problem

Distance = Literal["equal", "ordered"]


@dataclass(frozen=True)
class LargestP:
    """The largest permitted coin for one set size, with the worst set's H and how W was found."""

    eta: int
    p: float
    rho: float
    worst: float
    exact: bool
    bound: str


@dataclass(frozen=True)
class ClosenessSearch:
    """The design with the smallest expected L2 error among those that keep every set within t.

    worst: max_Z H(Z) at the chosen eta, or a bound from above. bound: "exact", or "safe bound: ..." with its kind;
    a safe bound keeps the guarantee and may cost accuracy.
    """

    design: DecoyDesign
    rho: float
    worst: float
    exact: bool
    bound: str


def largest_p(counts: NDArray[np.int64], t: float, eta: int, distance: Distance) -> LargestP:
    """The largest p with D(A, B) <= t for every set of `eta` values."""
    counts = _checked(counts, t, distance)
    d = counts.size
    if not 1 <= eta <= d:
        raise ValueError(f"eta must lie between 1 and the {d} values of the domain. Got {eta} instead.")
    if eta == d:  # the whole domain is published every time: nothing is learnt
        return LargestP(eta, 1.0, 1.0, 0.0, True, "exact")
    return largest_ps(counts, t, distance)[eta - 1]


def largest_ps(counts: NDArray[np.int64], t: float, distance: Distance) -> list[LargestP]:
    """`largest_p` for eta = 1 .. d - 1, for the price of one."""
    counts = _checked(counts, t, distance)
    d = counts.size
    limit = Fraction(t)
    if t >= 1:  # no two distributions are further apart than 1
        return [LargestP(eta, 1.0, inf, 0.0, True, "exact") for eta in range(1, d)]
    by_size = _worst_equal(counts, limit)
    if distance == "ordered":
        by_size = worst_ordered(counts, limit, by_size)
    worst = _with_absent_values(by_size, d)
    return [_largest(eta, d, limit, *worst[eta]) for eta in range(1, d)]


def search(counts: NDArray[np.int64], t: float, distance: Distance, *, smallest_eta: int = 1) -> ClosenessSearch:
    """The best (eta, p) with smallest_eta <= eta < d under which every set stays within t of A.

    Equation 9's expected L2 error falls with p and, for a given p, rises with eta; it is a function of
    eta / (p^2 (d - eta)) whatever the number of records, so that is what is minimised. Ties go to the smaller eta.
    """
    counts = _checked(counts, t, distance)
    d = counts.size
    if smallest_eta < 1:
        raise ValueError(f"smallest_eta must be at least 1. Got {smallest_eta} instead.")
    if d == 1:  # a domain of one value has no secret
        return ClosenessSearch(DecoyDesign.exact(1), 1.0, 0.0, True, "exact")
    if smallest_eta >= d:
        raise PolicyError(
            [
                Problem(
                    "",
                    f"sets of {smallest_eta} values leave nothing to learn from a domain of {d}.",
                    "Lower l, declare a larger domain, or publish the whole domain as every set (eta = d).",
                )
            ]
        )
    options = largest_ps(counts, t, distance)[smallest_eta - 1 :]
    best = min(options, key=lambda option: (option.eta / (d - option.eta)) ** 0.5 / option.p)
    design = DecoyDesign(d=d, eta=best.eta, p=best.p)
    return ClosenessSearch(design, best.rho, best.worst, best.exact, best.bound)


def rho_without_counts(t: float) -> float:
    """((1 + t) / (1 - t))^2: at or below this rho, equal-distance t-closeness holds for *every* distribution.

    m (1 - t - m) is at most ((1 - t) / 2)^2 for any m, whether or not a set of that mass exists.
    """
    return inf if t >= 1 else ((1 + t) / (1 - t)) ** 2


def _largest(eta: int, d: int, t: Fraction, worst: Fraction, bound: str) -> LargestP:
    """p = eta t / (d W + eta t) rounded down to a float, and the rho of that float."""
    if worst <= 0:
        return LargestP(eta, 1.0, inf, float(worst), bound == "exact", bound)
    exact = eta * t / (d * worst + eta * t)
    p = min(float(exact), CLOSEST_TO_ONE)
    if p > exact:  # Python compares a float with a fraction exactly
        p = nextafter(p, 0.0)
    rho = 1 + p * d / (eta * (1 - p))
    return LargestP(eta, p, rho, float(worst), bound == "exact", bound)


def _worst_equal(counts: NDArray[np.int64], t: Fraction) -> list[tuple[Fraction, str]]:
    """max of m (1 - t - m) over sets of j occurring values: the reachable mass nearest to (1 - t) / 2."""
    total = int(counts.sum())
    occurring = counts[counts > 0]

    def best(reach: Reach) -> tuple[Fraction, str]:
        height, s = max((Fraction(s, total) * (1 - t - Fraction(s, total)), s) for s in reach.sums)
        return height, "exact" if s in reach.attained else f"safe bound: {reach.note}"

    return [best(reach) for reach in nearest_sums(occurring, total * (1 - t) / 2)]


def _with_absent_values(by_size: list[tuple[Fraction, str]], d: int) -> dict[int, tuple[Fraction, str]]:
    """From sets of j occurring values to sets of eta values: absent values fill up and add no mass."""
    k = len(by_size) - 1
    absent = d - k
    return {
        eta: max(by_size[max(0, eta - absent) : min(k, eta) + 1], key=lambda found: found[0]) for eta in range(1, d)
    }


def _checked(counts: NDArray[np.int64], t: float, distance: Distance) -> NDArray[np.int64]:
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
