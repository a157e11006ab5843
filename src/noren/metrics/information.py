"""Information that a release retains (paper 004, Definition 14) and protection beyond what was asked (Definition 35).

A cell that leaves v base values open retains 1/v. A group of an anatomised column leaves open the different values it
holds; that it also publishes their counts is not rewarded, so nodes and groups over the same values compare. A dropped
record retains nothing. The measure alone is a poor guide: exact quasi-identifiers beside a sensitive column that says
nothing score high. Therefore the parts are always told apart, and a policy may weigh the columns.
"""

# ruff: noqa: E741  l is the paper's letter

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from noren.errors import QueryError, RequirementNotMet
from noren.metrics.general import GeneralColumn, GeneralTable, node_totals
from noren.metrics.strength import TOLERANCE, checked_requirement, psi
from noren.ragged import chosen, owners

CHUNK = 1 << 22
"""Cells of the (classes, values) table that are worked on at a time."""


@dataclass(frozen=True)
class Utility:
    """Share of the original's information that is left: 1 for the original, higher is better."""

    total: float
    quasi: float | None
    """Of the quasi-identifiers alone; None without any."""
    sensitive: float | None
    """Of the sensitive columns alone; None without any."""


def column_information(table: GeneralTable, name: str) -> float:
    """Sum over the published records of 1 / base values left open; n for a column published as it is."""
    column = table.column(name)
    return float((1 / np.maximum(column.spread, 1))[column.cells[table.keep]].sum())


def information_score(table: GeneralTable) -> float:
    """I(G): all quasi-identifiers and sensitive columns together (Definition 14)."""
    return sum(column_information(table, name) for name in table.measured)


def utility_scores(table: GeneralTable, weights: Mapping[str, float] | None = None) -> Utility:
    """um = I(G) / I(original), in total and apart. `weights` say how much a column matters; 1 where not named."""
    given = {name: 1.0 if weights is None else float(weights.get(name, 1.0)) for name in table.measured}
    wrong = [name for name, weight in given.items() if not 0 <= weight < np.inf]
    if wrong:
        raise QueryError(f"the weight of {wrong[0]!r} is not a number from 0.", hint="Weights are 0 or more.")
    kept = {name: column_information(table, name) / table.n for name in given}

    def mean(names: tuple[str, ...]) -> float | None:
        whole = sum(given[name] for name in names)
        return sum(given[name] * kept[name] for name in names) / whole if whole > 0 else None

    total = mean(table.measured)
    if total is None:
        raise QueryError(
            "no column with a weight above 0 is left to measure.",
            hint="Utility is about quasi-identifiers and sensitive columns.",
        )
    return Utility(total, mean(table.quasi), mean(table.sensitive))


def utility_score(table: GeneralTable) -> float:
    """um over all columns, equal weights. Read it beside the two parts."""
    return utility_scores(table).total


def quasi_utility_score(table: GeneralTable) -> float:
    """um of the quasi-identifiers alone."""
    table.quasi_columns()
    return float(utility_scores(table).quasi or 0.0)


def sensitive_utility_score(table: GeneralTable) -> float:
    """um of the sensitive columns alone."""
    if not table.sensitive:
        raise QueryError("the table has no sensitive column.", hint="Give a column that role in the policy.")
    return float(utility_scores(table).sensitive or 0.0)


def excess_of_classes(
    table: GeneralTable, tau: float, l: int, sensitive: str, weights: ArrayLike | None = None
) -> NDArray[np.float64]:
    """e(E) = sum over k of |psi(k) - F(k)| for every class (Definition 35).

    `weights` are those of the induced frequencies: 1 for every base value that occurs, unless given. Raises
    RequirementNotMet if a class breaks (tau, l): its distance would count as protection.
    """
    column = table.column(sensitive)
    weight = (column.counts > 0).astype(np.float64) if weights is None else np.asarray(weights, np.float64)
    used = np.flatnonzero(weight > 0)
    if weight.shape != column.counts.shape or (weight < 0).any() or (column.counts[weight == 0] > 0).any():
        raise QueryError(
            f"the weights of {sensitive!r} do not fit its {len(column.domain)} values.",
            hint="Give every value a weight from 0, above 0 for each that occurs.",
        )
    checked_requirement(tau, l, len(used))
    owner, value, amount = _induced(table, column, weight)
    place = np.zeros(len(weight), np.int64)
    place[used] = np.arange(len(used))
    bound = psi(np.arange(1, len(used) + 1), tau, l)
    excess = np.empty(int(owner[-1]) + 1 if len(owner) else 0)
    step = max(1, CHUNK // len(used))
    for start in range(0, len(excess), step):
        stop = min(start + step, len(excess))
        rows = slice(*np.searchsorted(owner, (start, stop)))
        key = (owner[rows] - start) * len(used) + place[value[rows]]
        found = np.bincount(key, amount[rows], minlength=(stop - start) * len(used)).reshape(-1, len(used))
        reached = np.cumsum(-np.sort(-found / found.sum(axis=1, keepdims=True), axis=1), axis=1)
        if (reached > bound + TOLERANCE).any():
            raise RequirementNotMet(
                f"the table does not satisfy ({tau:g}, {l})-diversity of {sensitive!r}, so it has no excess over it.",
                hint="Excessive protection is defined for tables that meet the requirement.",
            )
        excess[start:stop] = np.abs(bound - reached).sum(axis=1)
    return excess


def excessive_protection(
    table: GeneralTable, tau: float, l: int, sensitive: str, weights: ArrayLike | None = None
) -> float:
    """e(P): the least excess of all classes (Definition 35); 0 says that some class uses the requirement fully."""
    excess = excess_of_classes(table, tau, l, sensitive, weights)
    if not len(excess):
        raise QueryError("no record is published.", hint="An empty table has no classes.")
    return float(excess.min())


def _induced(
    table: GeneralTable, column: GeneralColumn, weight: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Class, base value and induced count (Definition 7), ascending by class and with classes 0, 1, ...

    The belief about a record of an anatomised column rests on its group, so there a class is a group.
    """
    if column.groups is not None:
        owner = np.unique(column.groups.group, return_inverse=True)[1].ravel()
        return owner, column.groups.value, column.groups.count.astype(np.float64)
    cells = column.cells[table.keep].astype(np.int64)
    key, count = np.unique(table.classes * column.kinds + cells, return_counts=True)
    owner, cell = key // column.kinds, key % column.kinds
    if column.nodes is None:
        return owner, cell, count.astype(np.float64)
    flat, bounds = column.nodes.flat_members()
    offsets, place = chosen(bounds, cell)
    entry, value = owners(offsets), flat[place]
    each = count / node_totals(column.nodes, weight)[cell]
    return owner[entry], value, each[entry] * weight[value]
