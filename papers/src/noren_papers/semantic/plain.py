"""Plain decoys, drawn without regard to meaning, against a distance: rates, sets, and how much room is left."""

from __future__ import annotations

from itertools import combinations, pairwise
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.designs import DecoyDesign
from noren.designs.draw import draw_sets
from noren.metrics.violation import separated
from noren.secret import Keystream
from noren_papers.semantic.material import Counts


def value_rates(distances: Counts, l: int, d: float) -> Counts:
    """Exact violation rate of plain decoys for every true value, on a line of ranks or on the classes of a tree."""
    near = distances < d * (1 - 1e-9)
    F, total = len(distances), comb(len(distances) - 1, l - 1)
    if np.array_equal(near, near @ near):  # being near is transitive: classes
        _, size = np.unique(np.argmax(near, axis=1), return_counts=True)
        own = near.sum(axis=1)
        fine = [_chosen([*np.delete(size, int(np.flatnonzero(size == n)[0]))], l - 1) for n in own]
        return 1 - np.array(fine, float) / total
    step = int(np.argmin(near[0]))
    out = np.empty(F)
    for v in range(F):
        left, right = max(0, v - step + 1), max(0, F - v - step)
        out[v] = 1 - sum(separated(left, k, step) * separated(right, l - 1 - k, step) for k in range(l)) / total
    return out


def _chosen(sizes: list[int], count: int) -> int:
    """Ways to choose `count` values, each of another class."""
    ways = [1] + [0] * count
    for size in sizes:
        for k in range(count, 0, -1):
            ways[k] += ways[k - 1] * int(size)
    return ways[count]


def violates(sets: NDArray[Any], distances: Counts, d: float) -> NDArray[np.bool_]:
    """Which sets hold two values closer than d."""
    out = np.zeros(len(sets), bool)
    for a, b in combinations(range(sets.shape[1]), 2):
        out |= distances[sets[:, a], sets[:, b]] < d * (1 - 1e-9)
    return out


def plain_sets(codes: NDArray[Any], F: int, l: int) -> NDArray[Any]:
    """Decoys of the l-diversity paper: any l - 1 other values."""
    return np.asarray(draw_sets(DecoyDesign(d=F, eta=l), codes, Keystream(), attribute="x").codes(l), np.int64)


def room(F: int, chosen: tuple[int, ...], d: int) -> int:
    """Equation 9, for ranks 1..F: how many more values the paper counts as possible, going round the circle."""
    total = 0
    for i, here in enumerate(chosen):
        there = chosen[(i + 1) % len(chosen)]
        gap = there - here if here < there else F - here + there
        total += max(gap // d - 1, 0)
    return total


def true_room(F: int, chosen: tuple[int, ...], d: int) -> int:
    """How many more values really fit, at both ends and in between."""
    inner = sum((b - a) // d - 1 for a, b in pairwise(chosen))
    return (chosen[0] - 1) // d + inner + (F - chosen[-1]) // d
