"""How near the total of j counts can come to a target, for every j at once.

Exact by dynamic programming over bit sets: bit s of the j-th big integer says that some j counts add up to s, and
adding a count is one shift. Where that would cost too much, counts are divided by a grain first, and the answer is
an interval that is certain to hold the nearest total: callers that take its nearest end are on the safe side.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

WORK_LIMIT = 4 * 10**9  # bytes of bit set that may be moved: some tenths of a second
MEMORY_LIMIT = 2 * 10**8  # bytes of bit set that may be held
SIZE_LIMIT = 1_500  # counts; beyond, the number of big integers alone is the cost


@dataclass(frozen=True)
class Reach:
    """Totals of j counts next to the target, below and above.

    sums: the nearest candidates; the true nearest totals are no nearer than these. attained: those of them that
    some j counts reach exactly. note: why the others are only bounds.
    """

    sums: tuple[Fraction, ...]
    attained: frozenset[Fraction]
    note: str


def nearest_sums(
    counts: NDArray[np.int64], target: Fraction, *, work_limit: int = WORK_LIMIT, size_limit: int = SIZE_LIMIT
) -> list[Reach]:
    """`Reach` for j = 0 .. k of k positive counts. Half of the j are read off the complements."""
    ascending = np.sort(counts)
    k = ascending.size
    total = int(ascending.sum())
    lightest = [0, *np.cumsum(ascending).tolist()]
    if k > size_limit:
        return [_clipped(target, lightest[j], total - lightest[k - j]) for j in range(k + 1)]
    held = k // 2 * total // 8
    grain = max(1, ceil(_work(ascending) / work_limit), ceil(held / MEMORY_LIMIT))
    reachable = _bit_sets(ascending // grain, k // 2)
    found = []
    for j in range(k + 1):
        size = min(j, k - j)
        ends = (lightest[size], total - lightest[k - size])
        if size == j:
            found.append(_near(reachable[size], target, size, grain, ends))
        else:
            mirror = _near(reachable[size], total - target, size, grain, ends)
            sums = tuple(total - s for s in mirror.sums)
            found.append(Reach(sums, frozenset(total - s for s in mirror.attained), mirror.note))
    return found


def _work(ascending: NDArray[np.int64]) -> int:
    """Bytes that `_bit_sets` moves: count i shifts at most min(i, k/2) sets as long as the total so far."""
    k = ascending.size
    depth = np.minimum(np.arange(1, k + 1), k // 2).astype(float)
    return int((depth * np.cumsum(ascending.astype(float))).sum() / 8) * 3


def _bit_sets(ascending: NDArray[np.int64], depth: int) -> list[int]:
    """Bit s of entry j: some j of the counts add up to s. Small counts first keep the integers short for longest."""
    reachable = [1] + [0] * depth
    for i, count in enumerate(ascending.tolist()):
        for j in range(min(i, depth - 1), -1, -1):
            reachable[j + 1] |= reachable[j] << count
    return reachable


def _near(bits: int, target: Fraction, size: int, grain: int, ends: tuple[int, int]) -> Reach:
    """The reachable totals next to the target; with a grain g, bit s stands for [g s, g s + size (g - 1)]."""
    slack = size * (grain - 1)
    low, high = ends
    sums: set[Fraction] = set()
    cut = floor(target / grain)
    if cut >= 0 and (below := bits & ((1 << (cut + 1)) - 1)):
        start = (below.bit_length() - 1) * grain
        sums.add(min(Fraction(start + slack), target) if slack else Fraction(start))
    cut = max(0, ceil(target / grain))
    if above := bits >> cut:
        sums.add(Fraction(((above & -above).bit_length() - 1 + cut) * grain))
    clipped = frozenset(min(max(s, Fraction(low)), Fraction(high)) for s in sums)
    attained = clipped if not slack else clipped & {Fraction(low), Fraction(high)}
    return Reach(tuple(clipped), attained, f"counts rounded down to multiples of {grain}")


def _clipped(target: Fraction, low: int, high: int) -> Reach:
    nearest = min(max(target, Fraction(low)), Fraction(high))
    attained = frozenset({nearest} & {Fraction(low), Fraction(high)})
    return Reach((nearest,), attained, "a set of the worst possible mass may exist")
