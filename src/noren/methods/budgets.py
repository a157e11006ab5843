"""Privacy budgets of drawn columns: bounds of single columns, and budgets that several columns share.

Every figure here is a function of domain sizes and requirements, which are public, so that what is published of a
design discloses nothing about the counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, inf

import numpy as np
from numpy.typing import NDArray

from noren.errors import PolicyError, Problem
from noren.models.base import Model

UNITS = 2_000
"""Into how many parts the smallest budget is divided."""
MOST_UNITS = 100_000
"""Parts of the largest one."""


@dataclass(frozen=True)
class Drawn:
    """A drawn column: its values, the possible sizes of its sets, and its largest epsilon."""

    d: int
    least: int = 1
    most: int | None = None
    """Largest set; None for any that leaves something out."""
    limit: float = inf
    fixed: float | None = None
    """The epsilon that the holder chose."""


def epsilons(requirements: Sequence[Model], columns: Mapping[str, Drawn]) -> dict[str, float]:
    """Return the largest epsilon of every column that the requirements permit; infinite without a requirement."""
    limits = {name: column.limit for name, column in columns.items()}
    budgets: list[tuple[float, list[str]]] = []
    problems: list[Problem] = []
    for model in requirements:
        if model.epsilon_together == inf:
            continue
        fixed = {name: value for name in model.on if (value := columns[name].fixed) is not None}
        free, left = [name for name in model.on if name not in fixed], model.epsilon_together - sum(fixed.values())
        if left < -1e-9 or (free and left <= 0):
            message = f"the parameters of {', '.join(fixed)} have a total epsilon of {sum(fixed.values()):.4g}"
            message += ": p = 1 has none." if left == -inf else f", but at most {model.required:g} is required."
            hint = "Remove them from [method.parameters], or fix smaller ones."
            problems.append(Problem(f"require on {', '.join(map(repr, model.on))}", message, hint))
        elif sum(limits[name] for name in free) > left:
            budgets.append((left, free))
    if problems:
        raise PolicyError(problems)
    return limits | (split(budgets, columns) if budgets else {})


def split(budgets: Sequence[tuple[float, Sequence[str]]], columns: Mapping[str, Drawn]) -> dict[str, float]:
    """Divide epsilons among the columns of each budget, with the smallest sum of expected squared errors.

    Unit by unit to the column that gains most, which is best where errors fall ever more slowly: they do, but for the
    small steps between set sizes.
    """
    names = list(dict.fromkeys(name for _, shared in budgets for name in shared))
    totals = np.array([total for total, _ in budgets])
    unit = max(totals.min() / UNITS, totals.max() / MOST_UNITS)
    room = np.floor(totals / unit + 1e-9).astype(np.int64)
    pays = np.array([[name in shared for name in names] for _, shared in budgets])
    tops = [
        min(int(room[pays[:, i]].min()), MOST_UNITS if (limit := columns[name].limit) == inf else floor(limit / unit))
        for i, name in enumerate(names)
    ]
    errors = [expected_errors(columns[n], np.arange(top + 1) * unit) for n, top in zip(names, tops, strict=True)]
    given = np.zeros(len(names), np.int64)

    def gain(i: int) -> float:
        now, then = errors[i][given[i] : given[i] + 2] if given[i] < tops[i] else (0.0, inf)
        return inf if now == inf else float(now - then)

    gains = np.array([gain(i) for i in range(len(names))])
    while gains.max() > 0:
        chosen = int(gains.argmax())
        given[chosen] += 1
        room -= pays[:, chosen]
        gains[chosen] = gain(chosen)
        gains[pays[room < 1].any(axis=0)] = -inf
    return {name: float(given[i] * unit) for i, name in enumerate(names)}


def expected_errors(column: Drawn, epsilon: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the expected squared error of a column's shares times the number of records (equation 9, up to a
    constant), with the best set size for every epsilon.

    It is proportional to (d + a eta)^2 / (a^2 eta (d - eta)) with a = exp(epsilon) - 1: least at
    eta = d / (exp(epsilon) + 1).
    """
    d, a = column.d, np.expm1(epsilon)
    best, out = d / (a + 2), np.full(len(epsilon), inf)
    for near in (np.floor(best), np.ceil(best)):
        eta = np.clip(near, column.least, d - 1 if column.most is None else column.most)
        with np.errstate(divide="ignore"):
            out = np.minimum(out, (d + a * eta) ** 2 / (a * a * eta * (d - eta)))
    return np.asarray(out * (d - 1) ** 2 / d)
