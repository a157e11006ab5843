"""Protection beyond what was asked (paper 004, Definition 35)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from noren.errors import QueryError, RequirementNotMet
from noren.metrics.general import GeneralColumn, GeneralTable, node_totals
from noren.ragged import chosen, owners
from noren_papers.tau_l.strength import TOLERANCE, checked_requirement, psi

CHUNK = 1 << 22
"""Cells of the (classes, values) table that are worked on at a time."""


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
            hint="Give every value a weight of at least 0, and above 0 if it occurs.",
        )
    checked_requirement(tau, l, len(used))
    bound, excess = psi(np.arange(1, len(used) + 1), tau, l), [np.empty(0)]
    for reached in cumulative(table, column, weight):
        if (reached > bound + TOLERANCE).any():
            raise RequirementNotMet(
                f"the table does not satisfy ({tau:g}, {l})-diversity of {sensitive!r}, so excessive protection is "
                "not defined.",
                hint="Use a tau and l that the table meets.",
            )
        excess.append(np.abs(bound - reached).sum(axis=1))
    return np.concatenate(excess)


def cumulative(
    table: GeneralTable, column: GeneralColumn, weight: NDArray[np.float64]
) -> Iterator[NDArray[np.float64]]:
    """F(1), F(2), ... of every class by induced frequencies (Definitions 7 and 9), some classes at a time."""
    used = np.flatnonzero(weight > 0)
    owner, value, amount = _induced(table, column, weight)
    place = np.zeros(len(weight), np.int64)
    place[used] = np.arange(len(used))
    classes, step = int(owner[-1]) + 1 if len(owner) else 0, max(1, CHUNK // len(used))
    for start in range(0, classes, step):
        stop = min(start + step, classes)
        rows = slice(*np.searchsorted(owner, (start, stop)))
        key = (owner[rows] - start) * len(used) + place[value[rows]]
        found = np.bincount(key, amount[rows], minlength=(stop - start) * len(used)).reshape(-1, len(used))
        yield np.cumsum(-np.sort(-found / found.sum(axis=1, keepdims=True), axis=1), axis=1)


def excessive_protection(
    table: GeneralTable, tau: float, l: int, sensitive: str, weights: ArrayLike | None = None
) -> float:
    """e(P): the least excess of all classes (Definition 35); 0 says that some class uses the requirement fully."""
    excess = excess_of_classes(table, tau, l, sensitive, weights)
    if not len(excess):
        raise QueryError("no record is published.", hint="Publish a release with at least one record first.")
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
