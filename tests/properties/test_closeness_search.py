"""The closeness search against every subset of small domains."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noren.designs import closeness
from noren.designs.closeness import largest_ps
from tests.oracles import closeness as oracle

counts_lists = st.lists(st.one_of(st.integers(0, 12), st.integers(0, 100_000)), min_size=2, max_size=7).filter(any)
limits = st.one_of(st.sampled_from([0.05, 0.1, 0.25, 0.5]), st.floats(1e-6, 0.999))
kinds = st.sampled_from(["equal", "ordered"])


@settings(max_examples=150, deadline=None)
@given(counts_lists, limits, kinds)
def test_every_set_is_within_t_and_a_larger_p_is_not(counts: list[int], t: float, kind: str) -> None:
    for found in largest_ps(np.array(counts), t, kind):
        assert found.exact
        worst = max(oracle.all_distances(counts, found.eta, found.p, kind))
        # the equal search is exact in integers; the ordered one may be a rounding error off where p = 1
        assert worst <= Fraction(t) * (1 if kind == "equal" else 1 + Fraction(1, 10**12))
        if found.p < 1:
            larger = min(1.0, found.p * (1 + 1e-6))
            # so near to 1 that the coin's resolution decides
            if found.p < 1 - 2.0**-39:
                assert max(oracle.all_distances(counts, found.eta, larger, kind)) > Fraction(t)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 500), min_size=1, max_size=8), st.integers(-50, 3_000), st.integers(1, 8))
def test_nearest_sums_bracket_the_target(counts: list[int], target: int, heavy: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(closeness, "HEAVY", heavy)
        found = closeness.nearest_sums(np.array(counts), target)
    for j, sums in enumerate(found):
        reachable = {sum(chosen) for chosen in combinations(counts, j)}
        below, above = [s for s in reachable if s <= target], [s for s in reachable if s >= target]
        assert not below or max(s for s in sums if s <= target) >= max(below)
        assert not above or min(s for s in sums if s >= target) <= min(above)
        if heavy >= len(counts):
            assert min(abs(s - target) for s in sums) == min(abs(s - target) for s in reachable)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(0, 60), min_size=3, max_size=8).filter(any), limits)
def test_ordered_bounds_lie_above_every_set(counts: list[int], t: float) -> None:
    array = np.array(counts)
    present = np.flatnonzero(array)
    if present.size < 2:
        return
    caps = closeness._Caps(array, present, t)
    for j in range(1, present.size + 1):
        # sets of j occurring values, on the domain with its absent places
        masses = [array[present][list(c)].sum() for c in _combinations(present.size, j)]
        worst = max(
            closeness.set_gap(array, present[list(c)], "ordered") - Fraction(t) * Fraction(int(m), int(array.sum()))
            for c, m in zip(_combinations(present.size, j), masses, strict=True)
        )
        assert worst <= caps.bound(j) + 1e-12
        listed = closeness._worst_listed(array, present, Fraction(t), "ordered", j)
        assert abs(float(listed - worst)) < 1e-12


def _combinations(k: int, j: int) -> list[tuple[int, ...]]:
    return list(combinations(range(k), j))


@settings(max_examples=60, deadline=None)
@given(counts_lists, limits, kinds, st.integers(1, 4))
def test_where_sets_are_not_listed_p_is_smaller_but_safe(counts: list[int], t: float, kind: str, heavy: int) -> None:
    exact = largest_ps(np.array(counts), t, kind)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(closeness, "LISTED", 0)
        patch.setattr(closeness, "HEAVY", heavy)
        bounded = largest_ps(np.array(counts), t, kind)
    for found, safe in zip(exact, bounded, strict=True):
        assert safe.p <= found.p * (1 + 1e-9)
