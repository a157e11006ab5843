"""The closeness search against every subset of small domains."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from noren.designs import ordered
from noren.designs.closeness import largest_ps
from noren.designs.subset_sums import nearest_sums
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
@given(st.lists(st.integers(1, 500), min_size=1, max_size=8), st.integers(-50, 3_000), st.integers(1, 300))
def test_nearest_sums_bracket_the_target(counts: list[int], target: int, work_limit: int) -> None:
    goal = Fraction(target)
    exact = nearest_sums(np.array(counts), goal)
    rough = nearest_sums(np.array(counts), goal, work_limit=work_limit)
    coarse = nearest_sums(np.array(counts), goal, size_limit=0)
    for j in range(len(counts) + 1):
        sums = {sum(chosen) for chosen in combinations(counts, j)}
        nearest = min(abs(s - goal) for s in sums)
        assert min(abs(s - goal) for s in exact[j].sums) == nearest
        for safe in (exact[j], rough[j], coarse[j]):
            below = [s for s in sums if s <= goal]
            above = [s for s in sums if s >= goal]
            assert not below or max(s for s in safe.sums if s <= goal) >= max(below)
            assert not above or min(s for s in safe.sums if s >= goal) <= min(above)
            assert all(s in sums for s in safe.attained)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(0, 60), min_size=3, max_size=8).filter(any), limits)
def test_ordered_bounds_lie_above_every_set(counts: list[int], t: float) -> None:
    array = np.array(counts)
    present = np.flatnonzero(array)
    if present.size < 2:
        return
    caps = ordered._Caps(array, present, t)
    below = np.cumsum(array[present])[:-1] / array.sum()
    for j in range(1, present.size + 1):
        # sets of j occurring values, on the domain with its absent places
        masses = [array[present][list(c)].sum() for c in _combinations(present.size, j)]
        worst = max(
            ordered.ordered_gap(array, present[list(c)]) - Fraction(t) * Fraction(int(m), int(array.sum()))
            for c, m in zip(_combinations(present.size, j), masses, strict=True)
        )
        low, high = min(masses) / array.sum(), max(masses) / array.sum()
        by_mass = ordered.mass_bound(below, np.diff(present), array.size, t, low=low, high=high)
        assert worst <= caps.bound(j) + 1e-12
        assert caps.bound(j) <= by_mass + 1e-12
        by_trial, _ = ordered._by_trial(array, present, Fraction(t), j)
        assert abs(float(by_trial - worst)) < 1e-12


def _combinations(k: int, j: int) -> list[tuple[int, ...]]:
    return list(combinations(range(k), j))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=6), st.floats(0, 1))
def test_the_mass_bound_is_the_further_end_of_each_interval(below: list[float], m: float) -> None:
    f = np.sort(np.array(below))
    direct = np.maximum(np.minimum(m * (1 - f), f * (1 - m)), np.minimum(m * f, (1 - m) * (1 - f))).sum() / f.size
    steps = np.ones(f.size, np.int64)
    assert np.isclose(ordered.mass_bound(f, steps, f.size + 1, 0.0, low=m, high=m), direct, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 60), min_size=3, max_size=7).filter(any), limits)
def test_beyond_the_sign_limit_p_is_smaller_but_safe(counts: list[int], t: float) -> None:
    exact = largest_ps(np.array(counts), t, "ordered")
    signs, trials = ordered.SIGN_LIMIT, ordered.TRIAL_LIMIT
    try:
        ordered.SIGN_LIMIT, ordered.TRIAL_LIMIT = 1, 0
        bounded = largest_ps(np.array(counts), t, "ordered")
        ordered.TRIAL_LIMIT = trials
        tried = largest_ps(np.array(counts), t, "ordered")
    finally:
        ordered.SIGN_LIMIT, ordered.TRIAL_LIMIT = signs, trials
    for found, safe, trial in zip(exact, bounded, tried, strict=True):
        assert safe.p <= found.p * (1 + 1e-9)
        assert abs(trial.p - found.p) < 1e-9
