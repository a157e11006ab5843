"""Post-randomisation from its definition: the whole matrix, Bayes' theorem value by value, EM without any structure."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray


def matrix(keep: Fraction, parts: Sequence[int]) -> list[list[Fraction]]:
    """[v][u]: keep v, or draw u by its part."""
    whole = sum(parts)
    return [[keep * (u == v) + (1 - keep) * Fraction(part, whole) for u, part in enumerate(parts)]
            for v in range(len(parts))]  # fmt: skip


def distance(prior: Sequence[Fraction], rows: Sequence[Sequence[Fraction]], seen: int, ordered: bool) -> Fraction:
    """How far the belief after one published value lies from the prior."""
    joint = [prior[v] * rows[v][seen] for v in range(len(prior))]
    belief = [part / sum(joint) for part in joint]
    if not ordered:
        return sum((abs(b - a) for a, b in zip(prior, belief, strict=True)), Fraction(0)) / 2
    total, ahead = Fraction(0), Fraction(0)
    for a, b in list(zip(prior, belief, strict=True))[:-1]:
        ahead += b - a
        total += abs(ahead)
    return total / (len(prior) - 1)


def maximum_likelihood(
    rows: NDArray[np.float64], published: NDArray[np.int64], steps: int = 5000
) -> NDArray[np.float64]:
    """EM on counts of published values: x_v <- sum_u n_u x_v P[v, u] / sum_w x_w P[w, u]."""
    x = np.full(len(rows), published.sum() / len(rows))
    for _ in range(steps):
        joint = x[:, None] * rows
        x = (joint / joint.sum(axis=0) * published).sum(axis=1)
    return x
