"""Estimates of how many people are unique in the population of a sample, from class sizes.

All three estimators see only how many classes of each size the sample has, and suppose that it was drawn at random
with a known fraction pi of the population's N records.

- Pitman (Hoshino 2001): class sizes follow Pitman's sampling formula with parameters theta and alpha, fitted by
  maximum likelihood; then E[uniques of N] = N Gamma(theta + 1) Gamma(theta + alpha + N - 1) / (Gamma(theta + alpha)
  Gamma(theta + N)).
- Zayatz (1991): the population has classes of each size in the same proportions as the sample; Bayes' rule gives the
  chance that a sample unique is a population unique.
- Slide negative binomial (Chen and Keller-McNulty 1998): a population class has 1 + NB(a, b) records. The sample sees
  each record with probability pi; the parameters and the number of classes are those that reproduce the sample's
  number of classes, its number of uniques, and N.

The decision rule is that of Dankar, El Emam, Neisa and Roffey (2012): Pitman for pi up to 0.1; beyond, the smaller of
Zayatz and the slide negative binomial; Zayatz where the chosen model cannot be fitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noren.ragged import distinct_of

SMALL_FRACTION = 0.1
SMALL_ALPHA = 1e-3
GRID = 240
STEPS = 45


@dataclass(frozen=True)
class Uniqueness:
    """The estimates of population uniques by each model, None if one cannot be fitted; and the selected one."""

    population: int
    ways: Mapping[str, float | None]
    chosen: str

    @property
    def uniques(self) -> float:
        return float(self.ways[self.chosen] or 0.0)

    @property
    def share(self) -> float:
        """Return uniques as a share of the population."""
        return self.uniques / max(1, self.population)


def uniqueness(sizes: NDArray[np.int64], fraction: float) -> Uniqueness:
    """Return all estimates from the sizes of the sample's classes, and the one that the decision rule selects."""
    n, single = int(sizes.sum()), int((sizes == 1).sum())
    population = max(n, round(n / fraction))
    if not single or population == n:
        return Uniqueness(population, {"counted": float(single)}, "counted")
    by_pitman, by_zayatz, by_snb = pitman(sizes, population), zayatz(sizes, population), snb(sizes, population)
    chosen = "zayatz"
    if fraction <= SMALL_FRACTION:
        chosen = "zayatz" if by_pitman is None else "pitman"
    elif by_snb is not None and by_snb <= by_zayatz:
        chosen = "snb"
    return Uniqueness(population, {"pitman": by_pitman, "zayatz": by_zayatz, "snb": by_snb}, chosen)


# ---------------------------------------------------------------------- Pitman


def pitman(sizes: NDArray[np.int64], population: int) -> float | None:
    """Return the expected uniques under Pitman's sampling formula, or None if its likelihood has no interior
    maximum."""
    from scipy.special import gammaln

    fitted = pitman_fit(sizes)
    if fitted is None:
        return None
    theta, alpha = fitted
    log = gammaln(theta + 1) - gammaln(theta + alpha) + gammaln(theta + alpha + population - 1)
    return float(population * np.exp(log - gammaln(theta + population)))


def pitman_fit(sizes: NDArray[np.int64]) -> tuple[float, float] | None:
    """Return the maximum likelihood estimate of theta and alpha, 0 <= alpha < 1, theta > -alpha."""
    from scipy.optimize import minimize
    from scipy.special import digamma, gammaln

    size, times = np.unique(sizes, return_counts=True)
    classes, n = int(times.sum()), int(sizes.sum())
    if classes in (1, n):
        return None
    several = size > 1
    size, times = size[several], times[several]
    order = np.arange(1, classes)

    def chain(theta: float, alpha: float) -> tuple[float, float]:
        """Return sums of log(theta + i alpha) and of its inverse over i = 1, ..., classes - 1."""
        if alpha < SMALL_ALPHA:  # there the closed forms cancel
            terms = theta + order * alpha
            return float(np.log(terms).sum()), float((1 / terms).sum())
        ratio = theta / alpha
        logs = (classes - 1) * np.log(alpha) + gammaln(ratio + classes) - gammaln(ratio + 1)
        return float(logs), float(digamma(ratio + classes) - digamma(ratio + 1)) / alpha

    def loss(at: NDArray) -> tuple[float, NDArray]:
        # alpha by its log odds and theta + alpha by its log: every point of the plane is allowed
        alpha = 1 / (1 + np.exp(-at[0]))
        rest = float(np.exp(at[1]))
        theta = rest - alpha
        logs, inverse = chain(theta, alpha)
        value = logs - (gammaln(theta + n) - gammaln(theta + 1))
        value += (times * (gammaln(size - alpha) - gammaln(1 - alpha))).sum()
        by_theta = inverse - digamma(theta + n) + digamma(theta + 1)
        by_alpha = (classes - 1 - theta * inverse) / alpha
        by_alpha -= (times * (digamma(size - alpha) - digamma(1 - alpha))).sum()
        # at a fixed rest, theta falls as alpha rises
        return -value / n, -np.array([(by_alpha - by_theta) * alpha * (1 - alpha), by_theta * rest]) / n

    box = [(-12.0, 12.0), (-12.0, float(np.log(1e4 * n)))]
    begin = np.array([0.0, np.log(max(1.0, classes / 2))])
    found = minimize(loss, begin, jac=True, method="L-BFGS-B", bounds=box, options={"ftol": 1e-14, "gtol": 1e-10})
    if not np.isfinite(found.fun) or found.x[0] > 11.9 or found.x[1] > box[1][1] - 0.1:
        return None
    alpha = float(1 / (1 + np.exp(-found.x[0])))
    return float(np.exp(found.x[1])) - alpha, alpha


# ---------------------------------------------------------------------- Zayatz


def zayatz(sizes: NDArray[np.int64], population: int) -> float:
    """Return sample uniques times the probability that one is a population unique, scaled up to the population."""
    from scipy.special import gammaln

    n = int(sizes.sum())
    size, times = np.unique(sizes, return_counts=True)
    single = int(times[size == 1].sum())
    if not single:
        return 0.0
    # hypergeometric: exactly one of a class's records is sampled
    size = size.astype(float)
    possible = population - size - n + 1 >= 0
    rest = np.where(possible, population - size, n - 1.0)
    log = np.log(size) + gammaln(rest + 1) - gammaln(rest - n + 2)
    log -= log.max()  # what does not depend on the size cancels
    seen = np.where(possible, np.exp(log), 0.0) * times
    total = float(seen.sum())
    chance = float(seen[size == 1].sum()) / total if total > 0 else 0.0
    return single * chance * population / n


# ---------------------------------------------------------------------- slide negative binomial


def snb(sizes: NDArray[np.int64], population: int) -> float | None:
    """Return the expected uniques under the slide negative binomial, or None if it does not fit the sample.

    Sampling turns 1 + NB(a, b) into Bernoulli(pi) + NB(a, b') with b' = b / (b + pi (1 - b)).
    """
    n, classes, single = int(sizes.sum()), len(sizes), int((sizes == 1).sum())
    if not 0 < single < classes:
        return None
    pi = n / population
    shape = np.exp(np.linspace(np.log(1e-4), np.log(1e4), GRID))
    excess = _single(shape, _many(shape, classes, population, pi), population, pi) - single
    good = np.isfinite(excess)
    turns = np.flatnonzero(good[:-1] & good[1:] & (np.sign(excess[:-1]) != np.sign(excess[1:])))
    if not len(turns):
        return None
    low, high = shape[turns[:1]], shape[turns[:1] + 1]
    rising = excess[turns[0] + 1] > excess[turns[0]]
    for _ in range(STEPS):
        middle = np.sqrt(low * high)
        above = _single(middle, _many(middle, classes, population, pi), population, pi) > single
        low, high = np.where(above == rising, low, middle), np.where(above == rising, middle, high)
    shape = np.sqrt(low * high)
    total = _many(shape, classes, population, pi)
    chance = shape / (shape + population / total - 1)
    return float((total * chance**shape)[0])


def _many(shape: NDArray, classes: int, population: int, pi: float) -> NDArray[np.float64]:
    """Return the number of classes in the population for a sample with so many; NaN if none fits."""
    low, high = np.full(len(shape), float(classes)), np.full(len(shape), float(population))

    def shown(total: NDArray) -> NDArray:
        return np.asarray(total * (1 - (1 - pi) * _thinned(shape, total, population, pi) ** shape))

    fits = (shown(low) <= classes + 1e-9) & (shown(high) >= classes - 1e-9)
    for _ in range(STEPS):
        middle = (low + high) / 2
        more = shown(middle) > classes
        low, high = np.where(more, low, middle), np.where(more, middle, high)
    return np.where(fits, (low + high) / 2, np.nan)


def _thinned(shape: NDArray, total: NDArray, population: int, pi: float) -> NDArray:
    """Return b' for the b that gives classes of population / total records on average."""
    b = shape / (shape + population / total - 1)
    return np.asarray(b / (b + pi * (1 - b)))


def _single(shape: NDArray, total: NDArray, population: int, pi: float) -> NDArray:
    """Return the expected uniques of the sample."""
    b = _thinned(shape, total, population, pi)
    none = b**shape
    return np.asarray(total * ((1 - pi) * none * shape * (1 - b) + pi * none))


# ---------------------------------------------------------------------- risk of one record


def expected_inverse(sizes: NDArray[np.int64], fraction: float) -> NDArray[np.float64]:
    """Return E[1 / F | f]: the journalist's risk for sample classes of f records, F of them in the population.

    F - f is negative binomial with f and pi (Benedetti and Franconi 1998), so this is the integral from 0 to 1 of
    w^(f - 1) pi / (pi + (1 - pi) w), taken in y = -f log w.
    """
    if fraction >= 1:
        return np.asarray(1 / sizes)
    size, _, place = distinct_of(sizes)
    node, weight = np.polynomial.legendre.leggauss(16)
    panels = np.arange(48.0)
    y = (panels[:, None] + (node + 1) / 2).reshape(-1)
    w = np.tile(weight / 2, len(panels)) * np.exp(-y)
    out = np.empty(len(size))
    for i, f in enumerate(size.tolist()):
        out[i] = (w / (1 + (1 - fraction) / fraction * np.exp(-y / f))).sum() / f
    return np.asarray(out[place])
