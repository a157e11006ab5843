"""The estimators as their formulas say them: every record against every cell, every matrix written out.

A record is a tuple of sets, one per attribute; a design is (d, eta, p). Slow on purpose.
"""

from __future__ import annotations

from itertools import combinations, product
from math import comb, prod

import numpy as np

Design = tuple[int, int, float]


def inclusion(design: Design) -> tuple[float, float]:
    """(Pt, Po)."""
    d, eta, p = design
    other = p * (eta - 1) / (d - 1) if d > 1 else 0.0
    return p + (1 - p) * eta / d, other + (1 - p) * eta / d


def set_probability(design: Design, chosen: frozenset[int], value: int) -> float:
    """P(R = chosen | value), from the two ways a set is drawn."""
    d, eta, p = design
    tails = (1 - p) / comb(d, eta)
    heads = p / comb(d - 1, eta - 1) if value in chosen else 0.0
    return heads + tails


def cells(designs: list[Design]) -> list[tuple[int, ...]]:
    return list(product(*(range(d) for d, _, _ in designs)))


def likelihoods(designs: list[Design], record: tuple[frozenset[int], ...]) -> np.ndarray:
    """L_i(c) for every cell."""
    return np.array(
        [prod(set_probability(g, s, v) for g, s, v in zip(designs, record, c, strict=True)) for c in cells(designs)]
    )


def em_step(designs: list[Design], records: list[tuple], x: np.ndarray) -> np.ndarray:
    """x_c <- sum_i x_c L_i(c) / sum_g x_g L_i(g)."""
    flat, out = x.ravel(), np.zeros(x.size)
    for record in records:
        weight = flat * likelihoods(designs, record)
        out += weight / weight.sum()
    return out.reshape(x.shape)


def log_likelihood(designs: list[Design], records: list[tuple], x: np.ndarray) -> float:
    return float(sum(np.log(likelihoods(designs, record) @ x.ravel()) for record in records))


def inclusion_counts(designs: list[Design], records: list[tuple]) -> np.ndarray:
    """Equation 17."""
    counts = [sum(all(v in s for v, s in zip(c, record, strict=True)) for record in records) for c in cells(designs)]
    return np.array(counts, float).reshape([d for d, _, _ in designs])


def delta(designs: list[Design]) -> np.ndarray:
    """Equation 19 as a full matrix."""
    out = np.ones((1, 1))
    for design in designs:
        true, other = inclusion(design)
        out = np.kron(out, other * np.ones((design[0], design[0])) + (true - other) * np.eye(design[0]))
    return out


def linear(designs: list[Design], records: list[tuple]) -> np.ndarray:
    w = inclusion_counts(designs, records)
    return np.linalg.solve(delta(designs), w.ravel()).reshape(w.shape)


def bayes_step(designs: list[Design], w: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Equation 26, cell by cell."""
    matrix, flat, seen = delta(designs), x.ravel(), w.ravel()
    out = np.zeros(flat.size)
    for a in range(flat.size):
        for b in range(flat.size):
            out[a] += seen[b] * matrix[a, b] * flat[a] / (matrix[:, b] @ flat)
    return out.reshape(x.shape)


def bayes(designs: list[Design], w: np.ndarray, eps: float) -> tuple[np.ndarray, int]:
    """Equation 26 step by step until no cell moves by eps, then equation 27; and how many steps that took."""
    matrix, seen = delta(designs), w.ravel()
    x, change, steps = seen.copy(), np.inf, 0
    while change >= eps:
        following = x * (matrix @ np.divide(seen, x @ matrix, out=np.zeros_like(seen), where=seen > 0))
        x, change, steps = following, float(np.abs(following - x).max()), steps + 1
    return x.reshape(w.shape) / prod(eta for _, eta, _ in designs), steps


def value_adding(designs: list[Design], records: list[tuple]) -> np.ndarray:
    """Equation 18."""
    w = inclusion_counts(designs, records)
    hit = prod(inclusion(design)[0] for design in designs)
    inside = prod(eta for _, eta, _ in designs)
    return w * hit / inside + (len(records) - w) * (1 - hit) / (w.size - inside)


def information(designs: list[Design], records: list[tuple], x: np.ndarray) -> np.ndarray:
    """J = sum_i L_i L_i' / (L_i . x)^2."""
    out = np.zeros((x.size, x.size))
    for record in records:
        weight = likelihoods(designs, record)
        out += np.outer(weight, weight) / (weight @ x.ravel()) ** 2
    return out


def score_moments(design: Design, group: frozenset[int], value: int) -> tuple[float, float]:
    """E and E of the square of (|R n G| - |G| Po) / (Pt - Po) given the true value, over all sets there are."""
    d, eta, _ = design
    true, other = inclusion(design)
    first = second = 0.0
    for chosen in map(frozenset, combinations(range(d), eta)):
        score = (len(chosen & group) - len(group) * other) / (true - other)
        first += set_probability(design, chosen, value) * score
        second += set_probability(design, chosen, value) * score**2
    return first, second


def linear_variance(designs: list[Design], groups: list[frozenset[int]], x: np.ndarray, population: bool) -> float:
    """Variance of the summed score of a product of groups, if the true table is x."""
    total = mean = 0.0
    for cell, count in zip(cells(designs), x.ravel(), strict=True):
        moments = [score_moments(g, group, v) for g, group, v in zip(designs, groups, cell, strict=True)]
        first, second = prod(m[0] for m in moments), prod(m[1] for m in moments)
        total += count * (second if population else second - first**2)
        mean += count * first
    return total - mean**2 / x.sum() if population else total
