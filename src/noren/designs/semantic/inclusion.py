"""What sums over a design's sets come to: inclusion probabilities, second moments, and what an adversary learns.

Each is exact wherever a closed form, a dynamic programme or a list of at most five million sets gives it, and says so;
otherwise it is a Monte Carlo mean, the same on every machine and every run, with its largest standard error.
"""

# ruff: noqa: E741  l is the paper's letter

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noren.designs.semantic.compatibility import Compatibility
from noren.designs.semantic.law import CHUNK, Law, spread_members, sum_pairs
from noren.designs.semantic.products import Product

POSTERIOR_DRAWS = 1 << 20
DRAWS = 1 << 22  # in all, shared out evenly over the true values
_SUMS = 1 << 29  # draws times groups of scores that second moments may take
_SEED = 20031  # not secret: it fixes the sums, never the decoys


@dataclass(frozen=True)
class Inclusion:
    """matrix[v, u] = P(u in R | v)."""

    matrix: NDArray[np.float64]
    exact: bool
    error: float = 0.0

    def condition(self) -> float:
        """Condition number of the system that turns inclusion counts into true counts; infinite if it is singular."""
        singular = np.linalg.svd(self.matrix, compute_uv=False)
        if singular[-1] <= singular[0] * len(self.matrix) * np.finfo(float).eps:
            return float("inf")
        return float(singular[0] / singular[-1])


@dataclass(frozen=True)
class Moments:
    """values[g, v] = E[(sum of scores[g] over R)^2 | v]."""

    values: NDArray[np.float64]
    exact: bool
    error: float = 0.0


@dataclass(frozen=True)
class PosteriorSummary:
    """What an adversary with this prior believes after seeing one set of this design."""

    worst: float  # largest P(v | R) over all sets and members, or the largest seen
    mean: float  # P(true value | R), averaged over people and draws
    bayes: float  # how often guessing the likeliest member is right
    certain: float  # how often the set leaves one member only
    partial: float  # how often the set has a member that cannot be the true value
    exact: bool
    error: float = 0.0  # largest standard error of the averages
    worst_exact: bool = True  # `worst` is known exactly even where the averages are not


def uniform_inclusion(compatibility: Compatibility, l: int) -> NDArray[np.float64]:
    """The inclusion matrix of the design that is uniform over feasible sets: its rank is that of all such designs."""
    return inclusion(Product(compatibility, l)).matrix


def inclusion(law: Law, draws: int = DRAWS) -> Inclusion:
    matrix = law.inclusion()
    if matrix is not None:
        return Inclusion(matrix, exact=True)
    out = np.zeros((law.F, law.F))
    listed = law.listed()
    if listed is not None:
        for sets, likelihood in listed:
            out += sum_pairs(sets, likelihood, law.F)
        return Inclusion(_normalised(out), exact=True)
    each = max(2, draws // law.F)
    for codes, sets in _samples(law, each):
        out += sum_pairs(sets, (sets == codes[:, None]).astype(float), law.F)
    out /= each
    return Inclusion(out, exact=False, error=float(np.sqrt(out * (1 - out) / each).max()))


def second_moments(law: Law, scores: NDArray, draws: int = DRAWS) -> Moments:
    scores = np.ascontiguousarray(scores, np.float64)
    if scores.ndim != 2 or scores.shape[1] != law.F:
        raise ValueError(f"scores must have one column for each of the {law.F} values")
    values = law.second_moments(scores)
    if values is not None:
        return Moments(values, exact=True)
    out = np.zeros(scores.shape)
    listed = law.listed()
    if listed is not None:
        for sets, likelihood in listed:
            squares = (spread_members(sets, np.ones(sets.shape), law.F) @ scores.T) ** 2
            out += (spread_members(sets, likelihood, law.F).T @ squares).T
        return Moments(out, exact=True)
    each = max(2, min(draws, _SUMS // max(1, len(scores))) // law.F)
    fourth = np.zeros(scores.shape)
    for codes, sets in _samples(law, each):
        squares = (spread_members(sets, np.ones(sets.shape), law.F) @ scores.T) ** 2
        truth = spread_members(codes[:, None], np.ones((len(codes), 1)), law.F).T
        out += (truth @ squares).T
        fourth += (truth @ squares**2).T
    out, fourth = out / each, fourth / each
    return Moments(out, exact=False, error=float(np.sqrt(np.maximum(fourth - out**2, 0) / each).max()))


def posterior_summary(law: Law, prior: NDArray | None = None, draws: int = POSTERIOR_DRAWS) -> PosteriorSummary:
    """Bayes' rule over all sets: P(v | R) is proportional to prior_v P(R | v)."""
    pi = np.full(law.F, 1 / law.F) if prior is None else np.asarray(prior, float)
    if pi.shape != (law.F,) or not pi.sum() > 0 or pi.min() < 0:
        raise ValueError(f"the prior must give a probability to each of the {law.F} values.")
    pi = pi / pi.sum()
    worst, sums = 0.0, np.zeros(4)
    listed = law.listed()
    if listed is not None:
        for sets, likelihood in listed:
            facts, chance = _facts(likelihood * pi[sets], likelihood)
            worst = max(worst, float(facts[0].max(initial=0)))
            sums += (facts[1:] * chance).sum(axis=1)
        return _summary(worst, sums, exact=True)
    squares, n = np.zeros(4), 0
    rng = np.random.default_rng(_SEED)
    for _ in range(0, draws, CHUNK):
        codes = rng.choice(law.F, CHUNK, p=pi)
        sets = law.sample(codes, rng)
        likelihood = law.likelihood(sets)
        facts, _chance = _facts(likelihood * pi[sets], likelihood)
        worst = max(worst, float(facts[0].max()))
        sums += facts[1:].sum(axis=1)
        squares += (facts[1:] ** 2).sum(axis=1)
        n += CHUNK
    mean = sums / n
    error = float(np.sqrt(np.maximum(squares / n - mean**2, 0) / n).max())
    known = law.worst_posterior(pi)
    return _summary(worst if known is None else known, mean, False, error, worst_exact=known is not None)


def _summary(
    worst: float, averages: NDArray, exact: bool, error: float = 0.0, worst_exact: bool = True
) -> PosteriorSummary:
    mean, bayes, certain, partial = averages.tolist()
    return PosteriorSummary(worst, mean, bayes, certain, partial, exact, error, worst_exact)


def _facts(joint: NDArray, likelihood: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Per set: largest posterior, expected posterior of the truth, Bayes success, certain, partial; and P(R)."""
    chance = joint.sum(axis=1)
    seen = chance > 0
    posterior = joint[seen] / chance[seen, None]
    top = posterior.max(axis=1)
    possible = likelihood[seen] > 0
    facts = np.stack(
        [top, (posterior**2).sum(axis=1), top, possible.sum(axis=1) == 1, ~possible.all(axis=1)], dtype=np.float64
    )
    return facts, chance[seen]


def _samples(law: Law, each: int) -> Iterator[tuple[NDArray, NDArray]]:
    """`each` draws for every true value, in chunks."""
    rng = np.random.default_rng(_SEED)
    total = each * law.F
    for start in range(0, total, CHUNK):
        codes = np.arange(start, min(start + CHUNK, total)) // each
        yield codes, law.sample(codes, rng)


def _normalised(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rows of sums that should have 1 on the diagonal, freed from the rounding of millions of additions."""
    diagonal = np.diag(matrix).copy()
    return np.asarray(matrix / np.where(diagonal > 0, diagonal, 1)[:, None])
