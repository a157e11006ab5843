"""MDAV and the best groups on a line, slowly and from their definitions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray


def embedded(
    numbers: Sequence[NDArray[np.float64]], categories: Sequence[NDArray], trees: Sequence[Sequence[NDArray]] = ()
) -> NDArray[np.float64]:
    """Records as points: numbers in standard deviations; categories as unit vectors, so that two differ by 2 (squared);
    trees as unit vectors at every level below the root, each with an equal part of that."""
    parts = [((column - column.mean()) / column.std())[:, None] for column in numbers]
    parts += [np.eye(int(column.max()) + 1)[column] for column in categories]
    for levels in trees:
        parts += [np.eye(int(level.max()) + 1)[level] / np.sqrt(len(levels)) for level in levels]
    return np.concatenate(parts, axis=1)


def mdav(points: NDArray[np.float64], k: int) -> set[frozenset[int]]:
    """The groups of Domingo-Ferrer and Mateo-Sanz: around the record farthest from the centre, then around the one
    farthest from that, k nearest each."""
    left = list(range(len(points)))
    out = []

    def apart(i: int, centre: NDArray) -> float:
        return float(((points[i] - centre) ** 2).sum())

    def take(around: int) -> None:
        near = sorted(left, key=lambda i: (apart(i, points[around]), i))[:k]
        out.append(frozenset(near))
        for i in near:
            left.remove(i)

    while len(left) >= 3 * k:
        centre = points[left].mean(axis=0)
        first = max(left, key=lambda i: (apart(i, centre), -i))
        second = max(left, key=lambda i: (apart(i, points[first]), -i))
        take(first)
        take(second)
    if len(left) >= 2 * k:
        centre = points[left].mean(axis=0)
        take(max(left, key=lambda i: (apart(i, centre), -i)))
    if left:
        out.append(frozenset(left))
    return set(out)


def best_line(numbers: Sequence[float], k: int) -> float:
    """Least sum of squares inside groups of at least k neighbours, over all ways to cut rising numbers."""
    n = len(numbers)

    def inside(i: int, j: int) -> float:
        part = np.array(numbers[i:j])
        return float(((part - part.mean()) ** 2).sum())

    @lru_cache(None)
    def best(i: int) -> float:
        if i == n:
            return 0.0
        return min((inside(i, j) + best(j) for j in range(i + k, n + 1)), default=float("inf"))

    return best(0)
