"""The cheapest cells to withhold, by trying every choice for every record. For a handful of records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product


def cheapest(rows: Sequence[tuple[int, ...]], k: int, weights: Sequence[float]) -> float:
    """Least total weight of withheld cells after which every published row occurs at least k times."""
    q = len(weights)
    prices = [sum(w for j, w in enumerate(weights) if mask >> j & 1) for mask in range(1 << q)]
    best = float("inf")
    for masks in product(range(1 << q), repeat=len(rows)):
        cost = sum(prices[mask] for mask in masks)
        if cost >= best:
            continue
        shown = [
            tuple(None if m >> j & 1 else v for j, v in enumerate(row)) for row, m in zip(rows, masks, strict=True)
        ]
        if min(Counter(shown).values()) >= k:
            best = cost
    return best
