"""Informed belief by enumeration: all sets of a small domain, straight from the formulas, and a generic solver."""

from __future__ import annotations

from itertools import combinations
from math import ceil, exp

import numpy as np


def all_sets(d: int, size: int) -> list[tuple[int, ...]]:
    return list(combinations(range(d), size))


def likelihoods(
    prior: list[float], most: float, size: int, multipliers: list[float], power: float
) -> dict[tuple[int, ...], dict[int, float]]:
    """P(R | v) for every set and member: the set's weight times the belief that it leaves in v, over its sum for v."""
    rank = {v: place for place, v in enumerate(sorted(range(len(prior)), key=lambda v: (-prior[v], v)))}
    joint: dict[tuple[int, ...], dict[int, float]] = {}
    for members in all_sets(len(prior), size):
        rarest = max(members, key=rank.__getitem__)
        belief = {v: 1 - (size - 1) * most if v == rarest else most for v in members}
        weight = 1.0
        for v in members:
            weight *= prior[v] ** power * exp(multipliers[v] * belief[v])
        joint[members] = {v: weight * belief[v] for v in members}
    total = [sum(row.get(v, 0.0) for row in joint.values()) for v in range(len(prior))]
    return {members: {v: mass / total[v] for v, mass in row.items()} for members, row in joint.items()}


def beliefs(chances: dict[int, float], prior: list[float]) -> dict[int, float]:
    """Bayes' rule for one set."""
    whole = sum(prior[v] * chance for v, chance in chances.items())
    return {v: prior[v] * chance / whole for v, chance in chances.items()}


def error(likelihood: dict[tuple[int, ...], dict[int, float]], shares: list[float]) -> float:
    """The trace of the inverse Fisher information of the shares, less that of their own outer product."""
    d = len(shares)
    information = np.zeros((d, d))
    for row in likelihood.values():
        chance = np.array([row.get(v, 0.0) for v in range(d)])
        information += np.outer(chance, chance) / float(chance @ shares)
    return float(np.trace(np.linalg.inv(information)) - np.square(shares).sum())


def least_error(prior: list[float], most: float, *, ranked: bool = False) -> float:
    """The least error of any design under which no belief exceeds `most`, by a generic solver.

    A design whose posteriors are mixtures tells less than one that says which part of the mixture it was (Blackwell),
    so that only the corners of {p >= 0, sum p = 1, p <= most} matter: `most` for 1/most values, rounded down, and the
    rest for one more. What is found is a lower bound for sets, which cannot say which member the rest is for. With
    `ranked` it is the rarest one, which a set can say.
    """
    from scipy.optimize import minimize

    d, size = len(prior), ceil(1 / most - 1e-9)
    corners = []
    for members in all_sets(d, size):
        rests = [max(members, key=lambda v: (-prior[v], v))] if ranked or size * most < 1 + 1e-9 else members
        for rest in rests:
            corner = np.zeros(d)
            corner[list(members)] = most
            corner[rest] = 1 - (size - 1) * most
            corners.append(corner)
    p, pi = np.array(corners), np.array(prior)

    def value(q: np.ndarray) -> tuple[float, np.ndarray]:
        inverse = np.linalg.inv((p * q[:, None]).T @ p)
        return float(np.diag(inverse) @ pi**2), -np.square((p @ inverse) * pi).sum(axis=1)

    found = minimize(
        value,
        np.full(len(p), 1 / len(p)),
        jac=True,
        bounds=[(0, 1)] * len(p),
        constraints={"type": "eq", "fun": lambda q: p.T @ q - pi, "jac": lambda q: p.T},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-10},
    )
    assert found.success
    return float(found.fun) - float(pi @ pi)
