"""What an adversary believes who sees one set of a design, by Bayes' rule over all its sets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noren.designs.semantic.law import CHUNK, Law

DRAWS = 1 << 20
SEED = 20031


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


def posterior_summary(law: Law, prior: NDArray | None = None, draws: int = DRAWS) -> PosteriorSummary:
    """Apply Bayes' rule to all sets: P(v | R) is proportional to prior_v P(R | v)."""
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
        told, bayes, certain, partial = sums.tolist()
        return PosteriorSummary(worst, told, bayes, certain, partial, exact=True)
    squares, n = np.zeros(4), 0
    rng = np.random.default_rng(SEED)
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
    told, bayes, certain, partial = mean.tolist()
    worst = worst if known is None else known
    return PosteriorSummary(worst, told, bayes, certain, partial, False, error, known is not None)


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
