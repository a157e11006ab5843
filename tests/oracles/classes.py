"""Slow, plain answers about classes of records: exact fractions and definitions, record by record."""

# ruff: noqa: E741  l is the papers' letter

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from math import exp, inf, log
from typing import Any

Shares = list[Fraction]


def gathered(keys: Sequence[Hashable], cells: Sequence[Any]) -> dict[Hashable, list[Any]]:
    """The cells of every class of equal keys."""
    out: dict[Hashable, list[Any]] = {}
    for key, cell in zip(keys, cells, strict=True):
        out.setdefault(key, []).append(cell)
    return out


def induced(cells: Sequence[Sequence[int]], d: int, weights: Sequence[Fraction] | None = None) -> Shares:
    """Share of every base value, each cell being the values that one record may have."""
    weights = weights or [Fraction(1)] * d
    total = [Fraction(0)] * d
    for cell in cells:
        under = sum(weights[v] for v in cell)
        for v in cell:
            total[v] += weights[v] / under if under else Fraction(1, len(cell))
    return [share / len(cells) for share in total]


def psi(k: int, tau: Fraction, l: int) -> Fraction:
    return tau + (1 - tau) * Fraction(k - 1, l - 1) if k <= l else Fraction(1)


def moved(p: Shares, q: Shares, ground: Sequence[Sequence[float]]) -> float:
    """The least work that turns p into q, as a transport problem."""
    import numpy as np
    from scipy.optimize import linprog

    d = len(p)
    leaves = np.kron(np.eye(d), np.ones(d))
    arrives = np.kron(np.ones(d), np.eye(d))
    marginals = [*map(float, p), *map(float, q)]
    found = linprog(np.asarray(ground).ravel(), A_eq=np.vstack([leaves, arrives])[:-1], b_eq=marginals[:-1])
    assert found.success
    return float(found.fun)


def grounds(levels: Sequence[Sequence[str]], distance: str) -> list[list[float]]:
    """Ground distances between base values. levels[h][v] is the ancestor of v at height h."""
    d, height = len(levels[0]), len(levels) - 1

    def apart(a: int, b: int) -> float:
        if a == b:
            return 0.0
        if distance == "equal":
            return 1.0
        if distance == "ordered":
            return abs(a - b) / (d - 1)
        return next(h for h in range(height + 1) if levels[h][a] == levels[h][b]) / height

    return [[apart(a, b) for b in range(d)] for a in range(d)]


def meeting(levels: Sequence[Sequence[str]], a: int, b: int) -> int:
    """The height at which two values meet in a tree; 0 of a value and itself."""
    return next(h for h in range(len(levels)) if levels[h][a] == levels[h][b])


def judge(
    model: str, given: Mapping[str, Any], p: Shares, n: int, q: Shares, levels: Sequence[Sequence[str]]
) -> tuple[float, bool]:
    """The figure of one class with shares p and n records, and whether it satisfies the model.

    q are the shares of the whole release. Bounds that are not strict are met within 1e-9.
    """
    slack = Fraction(1, 10**9)
    ranked = sorted(p, reverse=True)
    values = sum(share > 0 for share in p)
    exact = {name: Fraction(str(x)) for name, x in given.items() if isinstance(x, int | float)}
    match model:
        case "distinct-l-diversity":
            return values, values >= given["l"]
        case "frequency-l-diversity":
            return float(1 / ranked[0]), 1 / ranked[0] >= given["l"]
        case "m-invariance":
            figure = min(values, n) if ranked[0] * n <= 1 + slack else 0
            return figure, figure >= given["m"]
        case "entropy-l-diversity":
            entropy = -sum(float(x) * log(x) for x in p if x)
            return exp(entropy), entropy >= log(given["l"]) - 1e-9
        case "recursive-cl-diversity":
            tail = sum(ranked[given["l"] - 1 :])
            return float(ranked[0] / tail) if tail else inf, ranked[0] < exact["c"] * tail
        case "alpha-k-anonymity":
            return float(ranked[0]), ranked[0] <= exact["alpha"] and n >= given["k"]
        case "p-sensitive-k-anonymity":
            return values, values >= given["p"] and n >= given["k"]
        case "tau-l-diversity":
            tau, l = exact["tau"], given["l"]
            good, reached = values >= l, Fraction(int(values < l))
            for k in range(1, l):
                cumulated = sum(ranked[:k])
                good = good and cumulated <= psi(k, tau, l) + slack
                evenly = Fraction(k - 1, l - 1)
                reached = max(reached, (cumulated - evenly) / (1 - evenly))
            return float(reached), good
        case "t-closeness":
            distance = moved(p, q, grounds(levels, given["distance"]))
            return distance, distance <= given["t"] + 1e-9
        case "beta-likeness":
            worst, good = 0.0, True
            for share, overall in zip(p, q, strict=True):
                if share <= overall:
                    continue
                gain = float((share - overall) / overall)
                enhanced = given["form"] == "enhanced"
                if enhanced and gain > -log(overall):
                    worst, good = inf, False
                worst, good = max(worst, gain), good and gain <= given["beta"] + 1e-9
            return worst, good
        case "semantic-diversity":
            near = [[u for u in range(len(p)) if meeting(levels, u, v) < given["d"]] for v in range(len(p))]
            most = max(sum(p[u] for u in near[v]) for v in range(len(p)) if p[v])
            return float(1 / most), most * given["l"] <= 1 + slack
        case "delta-disclosure":
            changes = [
                abs(log(share / overall)) if share else inf for share, overall in zip(p, q, strict=True) if overall
            ]
            return max(changes), max(changes) < given["delta"]
        case "le-diversity":
            level = levels[len(levels) - 1 - given["e"]]
            trees = [sum(x for x, at in zip(p, level, strict=True) if at == name) for name in set(level)]
            return float(1 / max(trees)), 1 / max(trees) >= given["l"]
    raise LookupError(model)
