"""Uniques by looking at every pair of rows: slow and obvious."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import factorial, prod


def alone(rows: Sequence[Sequence[object]], people: Sequence[int], at: int, chosen: Sequence[int]) -> bool:
    """Whether nobody else has a row that agrees with this one in the chosen columns."""
    return not any(
        people[other] != people[at] and all(rows[other][i] == rows[at][i] for i in chosen) for other in range(len(rows))
    )


def minimal_uniques(rows: Sequence[Sequence[object]], people: Sequence[int], most: int) -> list[list[tuple[int, ...]]]:
    """For every row the combinations that make its person alone, while no part of them does."""
    columns = len(rows[0])
    out = []
    for at in range(len(rows)):
        found: list[tuple[int, ...]] = []
        for size in range(1, most + 1):
            for chosen in combinations(range(columns), size):
                parts = [part for n in range(1, size) for part in combinations(chosen, n)]
                if alone(rows, people, at, chosen) and not any(alone(rows, people, at, part) for part in parts):
                    found.append(chosen)
        out.append(found)
    return out


def scores(msus: Sequence[Sequence[tuple[int, ...]]], columns: int, most: int) -> list[float]:
    """Elliot's score: an MSU of s columns weighs (ATT - s)(ATT - s - 1)...(ATT - M)."""
    last = min(most, columns - 1)
    return [float(sum(prod(range(columns - last, columns - len(one) + 1)) for one in found)) for found in msus]


def full_weight(size: int, columns: int) -> int:
    """The weight where all sizes are looked at, as sdcMicro has it."""
    return factorial(columns - size)


def lonely(rows: Sequence[Sequence[float]], people: Sequence[int], reach: Sequence[float]) -> list[bool]:
    """Rows that no row of another person is near in all columns."""
    return [
        not any(
            people[b] != people[a]
            and all(abs(x - y) <= r * (1 + 1e-9) for x, y, r in zip(rows[a], rows[b], reach, strict=True))
            for b in range(len(rows))
        )
        for a in range(len(rows))
    ]
