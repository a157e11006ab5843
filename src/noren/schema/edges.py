"""Round edges of intervals: numbers that a person would have chosen, and that are no single record's value.

An edge lies near the place that a rule asks for and is the roundest number there: a multiple of the largest power of
ten, or of half or a fifth of one, that falls between two quantiles. The first and the last interval are open, because
the least and the largest value belong to somebody.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor, inf, log10

import numpy as np
from numpy.typing import NDArray

SLACK = 0.25
"""How far an edge may lie from its quantile, as a share of an interval's people."""
ENDS = 0.02
"""Share of the people beyond the last edge of intervals of one width, at either end."""
MOST_INTERVALS = 60
STEPS = (Fraction(1), Fraction(1, 2), Fraction(1, 5))


def roundest(low: float, high: float, near: float) -> float:
    """The roundest number from low to high, the one nearest to `near` where several are as round."""
    if low <= 0 <= high:
        return 0.0
    largest = max(abs(low), abs(high))
    for power in range(floor(log10(largest)) + 1, floor(log10(largest)) - 15, -1):
        for step in STEPS:
            unit = step * Fraction(10) ** power
            first, last = ceil(Fraction(low) / unit), floor(Fraction(high) / unit)
            if first <= last:
                return float(min(max(round(Fraction(near) / unit), first), last) * unit)
    return near


def quantile_cuts(numbers: NDArray[np.float64], counts: NDArray[np.int64], parts: int) -> list[float]:
    """Rising round numbers that part the people into about as many intervals of the same size; fewer where they tie."""
    order = np.argsort(numbers)
    values, reach = numbers[order], np.cumsum(counts[order]) / max(1, int(counts.sum()))

    def at(share: float) -> float:
        return float(values[min(int(np.searchsorted(reach, share, side="left")), len(values) - 1)])

    found = set()
    for part in range(1, parts):
        share = part / parts
        low, near, high = at(share - SLACK / parts), at(share), at(share + SLACK / parts)
        if low == high:  # many people share this value, or there are too few to round between them
            low, high = near - abs(near) * 0.05, near + abs(near) * 0.05
            at_it = int(counts[order][np.searchsorted(values, near)])
            low, high = (near, near) if at_it >= 5 else (low, high)
        found.add(roundest(low, high, near))
    return sorted(cut for cut in found if values[0] < cut <= values[-1])


def quantile_edges(numbers: NDArray[np.float64], counts: NDArray[np.int64], parts: Sequence[int]) -> list[list[float]]:
    """One list of edges for every number of parts, each a part of the one before, with open ends."""
    cuts = quantile_cuts(numbers, counts, parts[0])
    out = [[-inf, *cuts, inf]]
    for number in parts[1:]:
        inner = out[-1][1:-1]
        wanted = quantile_cuts(numbers, counts, number)
        kept = sorted({min(inner, key=lambda cut: abs(cut - one)) for one in wanted}) if inner else []
        out.append([-inf, *kept, inf])
    return out


def width_edges(
    numbers: NDArray[np.float64], counts: NDArray[np.int64], width: float | None = None, levels: int = 3
) -> list[list[float]]:
    """Edges at multiples of a round width, of twice and four times it and so on, with open ends."""
    order = np.argsort(numbers)
    values, reach = numbers[order], np.cumsum(counts[order]) / max(1, int(counts.sum()))
    low = float(values[int(np.searchsorted(reach, ENDS))])
    high = float(values[min(int(np.searchsorted(reach, 1 - ENDS)), len(values) - 1)])
    spread = max(high - low, abs(high) * 1e-6, 1e-9)
    step = Fraction(repr(width)) if width else Fraction(str(roundest(spread / 16, spread / 8, spread / 12)))
    out: list[list[float]] = []
    for level in range(levels):
        unit = step * 2**level
        first, last = ceil(Fraction(low) / unit), floor(Fraction(high) / unit)
        if (last - first) > MOST_INTERVALS * 10:
            break
        inner = [float(unit * i) for i in range(first, last + 1)]
        if out:
            inner = [edge for edge in inner if edge in set(out[-1])]
        if not inner or (out and len(inner) < 2):
            break
        out.append([-inf, *inner, inf])
    return out or [[-inf, roundest(low, high, (low + high) / 2), inf]]


def rises(edges: Sequence[float]) -> bool:
    """Whether edges are at least two and rise. NaN is above nothing."""
    return len(edges) > 1 and all(a < b for a, b in pairwise(edges))
