"""Algorithm 1 of the paper as it is printed, and how far the sets of a design can move a belief.

For every set size and every set Z the algorithm finds the largest p that keeps *this* set within t, and of all these
pairs it takes the one of least expected error. That is the p of the most harmless set; others break t with it.
"""

from __future__ import annotations

from itertools import combinations
from math import comb, inf, sqrt

import numpy as np
from numpy.typing import NDArray

from noren.designs import DecoyDesign
from noren.designs.closeness import nearest_sums

ENUMERATED = 50_000


def printed_design(counts: NDArray[np.int64], t: float) -> DecoyDesign:
    """What Algorithm 1 chooses, equal distances. The most harmless set of a size is its lightest or its heaviest one.

    With mass m a set allows rho - 1 = t / (m (1 - t - m)), without limit where that is not positive; over m this is
    largest at the ends.
    """
    ordered = np.sort(counts) / counts.sum()
    d, n = counts.size, int(counts.sum())
    options = []
    for eta in range(1, d):
        ends = (float(ordered[:eta].sum()), float(ordered[-eta:].sum()))
        least = min(mass * (1 - t - mass) for mass in ends)
        options.append(DecoyDesign(d=d, eta=eta, p=1.0 if least <= 0 else eta * t / (d * least + eta * t)))
    return min(options, key=lambda design: design.expected_l2(n))


def moved(mass: NDArray[np.float64], rho: float) -> NDArray[np.float64]:
    """Distance (equal distances) between the belief after a set of this mass and the overall distribution."""
    if rho == inf:
        return np.asarray(1 - mass)
    return np.asarray((rho - 1) * mass * (1 - mass) / (1 + mass * (rho - 1)))


def worst_distance(counts: NDArray[np.int64], design: DecoyDesign) -> float:
    """The largest distance over all sets of the design; where sets are too many, by sums nearest to the worst mass."""
    total = int(counts.sum())
    if comb(design.d, design.eta) <= ENUMERATED:
        sets = np.array(list(combinations(range(design.d), design.eta)))
        return float(moved(counts[sets].sum(axis=1) / total, design.rho).max())
    if design.rho == inf:
        return 1 - float(np.sort(counts)[: design.eta].sum()) / total
    peak = total / (1 + sqrt(design.rho))
    occurring = counts[counts > 0]
    absent = design.d - occurring.size
    reached = nearest_sums(occurring, peak)
    sizes = range(max(0, design.eta - absent), min(occurring.size, design.eta) + 1)
    masses = np.array([s / total for size in sizes for s in reached[size]])
    return float(moved(masses, design.rho).max())


def beyond(counts: NDArray[np.int64], design: DecoyDesign, members: NDArray, t: float) -> float:
    """The share of published sets (rows of codes) that move a belief by more than t."""
    mass = counts[members.astype(np.int64)].sum(axis=1) / counts.sum()
    return float((moved(mass, design.rho) > t + 1e-9).mean())
