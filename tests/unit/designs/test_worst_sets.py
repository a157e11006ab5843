"""The worst set in an order: exact against all sets, and bounds against what they say they are, on a fine grid."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from noren.designs.closeness import _Caps, _worst, set_gap

SLACK = Fraction(1, 2**48)


def by_hand(counts: list[int], members: tuple[int, ...]) -> Fraction:
    """G(Z): the sum over all places of |M_i - m F_i| over d - 1."""
    total = sum(counts)
    m = Fraction(sum(counts[v] for v in members), total)
    gap = Fraction(0)
    for i in range(len(counts)):
        inside = Fraction(sum(counts[v] for v in members if v <= i), total)
        gap += abs(inside - m * Fraction(sum(counts[: i + 1]), total))
    return gap / (len(counts) - 1)


def some(seed: int) -> tuple[list[int], Fraction]:
    """Six of nine values occur."""
    rng = np.random.default_rng(seed)
    counts = np.zeros(9, np.int64)
    counts[np.sort(rng.choice(9, 6, replace=False))] = rng.integers(1, 40, 6)
    return counts.tolist(), Fraction(int(rng.integers(1, 30)), 64)


CASES = [
    ([1, 14, 25], Fraction(25, 64)),
    ([25, 3, 14, 2], Fraction(29, 64)),
    ([27, 10, 24, 12, 2, 26], Fraction(7, 64)),
    *map(some, range(8)),
]


@pytest.mark.parametrize(("given", "t"), CASES)
def test_the_worst_of_all_sets_stands_a_hair_above_itself(given: list[int], t: Fraction) -> None:
    """Floating point rounds, so that a set that ties with the one that was found may be higher by 2^-48 of its mass."""
    counts = np.array(given)
    present = np.flatnonzero(counts)
    found = _worst(counts, t, "ordered")
    total = int(counts.sum())
    for j, (height, exact) in enumerate(found):
        heights = {}
        for own in combinations(present.tolist(), j):
            mass = Fraction(int(counts[list(own)].sum()), total)
            heights[own] = (by_hand(counts.tolist(), own) - t * mass, mass)
            assert set_gap(counts, np.array(own, np.int64), "ordered") == by_hand(counts.tolist(), own)
        worst = max(one for one, _ in heights.values())
        assert exact
        if worst > 0:
            assert height in {one + mass * SLACK for one, mass in heights.values() if one == worst}
        else:
            assert height == worst


@pytest.mark.parametrize("seed", range(4))
def test_caps_know_how_much_so_many_values_can_weigh(seed: int) -> None:
    """Sets of j values: at most the j largest masses lie before a place, and at most the j largest behind it."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 30, 6)
    counts[3] = 0
    t, present = 0.1, np.flatnonzero(counts)
    shares = counts[present] / counts.sum()
    below, steps = np.cumsum(shares)[:-1], np.diff(present)
    caps = _Caps(counts, present, t)
    for j in range(1, 6):
        low, high = np.sort(shares)[:j].sum(), np.sort(shares)[-j:].sum()
        m = np.linspace(low, high, 4001)[:, None]
        before = np.array([np.sort(shares[:i])[-j:].sum() for i in range(1, 5)])
        behind = np.array([np.sort(shares[i:])[-j:].sum() for i in range(1, 5)])
        gaps = np.maximum(np.minimum(m, before) - m * below, m * below - np.maximum(0, m - behind))
        largest = float((gaps @ steps / 5 - t * m[:, 0]).max())
        assert largest - 1e-12 <= caps.bound(j) <= largest + 2 * (high - low) / 4000 + 1e-12
