"""What an adversary believes after seeing one published set, and how far that is from the belief before.

Every number here rests on a stated prior and on one attribute's own set: the published design gives the likelihood,
Bayes' rule the rest. Several attributes, or several releases, tell an adversary more.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, islice
from math import comb

import numpy as np
from numpy.typing import NDArray

from noren.designs.decoys import DecoyDesign

ENUMERATION_LIMIT = 200_000
DRAWS = 1_000_000
_CHUNK = 20_000


def posterior(prior: NDArray, members: Sequence[int] | NDArray, design: DecoyDesign) -> NDArray[np.float64]:
    """P(v | R) for every value v of the domain, given the prior and the published set R of codes.

    Proportional to prior_v inside R and to prior_v / rho outside; with p = 1 nothing outside R stays possible and
    the odds inside are the prior odds.
    """
    prior = np.asarray(prior, float)
    inside = np.zeros(design.d, bool)
    inside[np.asarray(members, np.int64)] = True
    if prior.shape != (design.d,) or not prior.sum() > 0 or prior.min() < 0:
        raise ValueError(f"the prior must give a probability to each of the {design.d} values.")
    if len(members) != design.eta or int(inside.sum()) != design.eta:
        raise ValueError(f"a set of this design holds {design.eta} distinct values. Got {len(members)} instead.")
    weight = np.where(inside, prior, prior / design.rho)
    total = weight.sum()
    if not total > 0:
        raise ValueError("no value of the set is possible under this prior.")
    return np.asarray(weight / total)


def total_variation(a: NDArray, b: NDArray) -> float:
    """Half the sum of absolute differences: the earth mover's distance when all values are equally far apart."""
    return float(np.abs(np.asarray(a, float) - np.asarray(b, float)).sum() / 2)


def ordered_emd(a: NDArray, b: NDArray) -> float:
    """Earth mover's distance over ranks, 1 from the first value to the last; 0 for a domain of one value."""
    gaps = np.cumsum(np.asarray(a, float) - np.asarray(b, float))[:-1]
    return float(np.abs(gaps).sum() / gaps.size) if gaps.size else 0.0


def worst_confidence(counts: NDArray[np.int64], l: int) -> float:  # noqa: E741  the papers' letter
    """The largest A_v / A(R) over sets R of l values: how sure the table's own distribution makes an adversary.

    Attained by the most common value hidden among the l - 1 rarest. Only values that occur are counted: a decoy
    that is known never to occur protects nobody, and would put this at 1 for every table.
    """
    occurring = np.sort(counts[counts > 0])
    if not 1 <= l <= occurring.size:
        raise ValueError(f"l must lie between 1 and the {occurring.size} values that occur. Got {l} instead.")
    common = int(occurring[-1])
    return common / (common + int(occurring[: l - 1].sum()))


def mean_true_probability(counts: NDArray[np.int64], eta: int, *, seed: int = 0) -> float:
    """Mean over records of A_v / A(R) for p = 1: the chance of guessing right, for one who knows the distribution A.

    Exact where the domain has at most `ENUMERATION_LIMIT` sets of eta values; otherwise the mean of a million
    simulated records, whose standard error is below 0.0005.
    """
    d = counts.size
    if not 1 <= eta <= d or not counts.any():
        raise ValueError(f"eta must lie between 1 and the {d} values of the domain, and some value must occur.")
    mass = counts / counts.sum()
    if comb(d, eta) <= ENUMERATION_LIMIT:
        total = 0.0
        sets = combinations(range(d), eta)
        while chunk := list(islice(sets, _CHUNK)):
            inside = mass[np.array(chunk)]
            weight = inside.sum(axis=1)
            squares = (inside**2).sum(axis=1)
            total += float(np.divide(squares, weight, out=np.zeros_like(weight), where=weight > 0).sum())
        return total / comb(d - 1, eta - 1)
    # The mean is a mean of simulated records, not a release: a seeded generator is right here.
    rng = np.random.default_rng(seed)
    total = 0.0
    for _ in range(DRAWS // _CHUNK):
        truth = rng.choice(d, _CHUNK, p=mass)
        total += float((mass[truth] / (mass[truth] + _decoy_mass(mass, truth, eta - 1, rng))).sum())
    return total / DRAWS


def _decoy_mass(
    mass: NDArray[np.float64], truth: NDArray[np.int64], decoys: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Mass of `decoys` distinct values other than the truth, drawn uniformly for each record (Floyd's draw)."""
    others = mass.size - 1
    drawn = np.full((truth.size, decoys), -1, np.int64)
    for i, top in enumerate(range(others - decoys, others)):
        pick = rng.integers(0, top + 1, truth.size)
        repeated = (drawn[:, :i] == pick[:, None]).any(axis=1)
        drawn[:, i] = np.where(repeated, top, pick)
    drawn += drawn >= truth[:, None]  # number the others around the truth
    return np.asarray(mass[drawn].sum(axis=1))
