"""Attacks on decoys and classes against plain enumeration on tiny domains."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noren.audit.predictable import truths
from noren.audit.sample import wilson
from noren.audit.sets import Sets, believe
from noren.designs.decoys import DecoyDesign
from noren.methods.mechanism.refusals import Cut, learn
from noren.models import FrequencyLDiversity
from noren.statements import SetCells
from tests.unit.audit.world import drawn, secret


def set_probability(design: DecoyDesign, published: frozenset[int], value: int) -> Fraction:
    """P(set | value) by listing every draw: with probability p around the truth, otherwise blindly."""
    p = Fraction(design.p)
    around = [frozenset((value, *more)) for more in combinations(set(range(design.d)) - {value}, design.eta - 1)]
    blind = [frozenset(drawn) for drawn in combinations(range(design.d), design.eta)]
    return p * Fraction(around.count(published), len(around)) + (1 - p) * Fraction(blind.count(published), len(blind))


@st.composite
def designs(draw) -> DecoyDesign:
    d = draw(st.integers(2, 5))
    return DecoyDesign(d=d, eta=draw(st.integers(1, d)), p=draw(st.sampled_from([1.0, 0.75, 0.5, 0.25])))


def all_sets(design: DecoyDesign) -> list[tuple[int, ...]]:
    return list(combinations(range(design.d), design.eta))


def shares(draw, *shape: int) -> np.ndarray:
    counts = np.array(draw(st.lists(st.integers(1, 9), min_size=int(np.prod(shape)), max_size=int(np.prod(shape)))))
    return counts.reshape(shape) / counts.sum()


def named(name: str, design: DecoyDesign, codes: list[tuple[int, ...]]) -> Sets:
    return Sets(drawn(name, design), SetCells.from_codes(design.d, np.array(codes)))


@given(st.data())
@settings(max_examples=60)
def test_beliefs_are_bayes_rule_by_enumeration(data) -> None:
    """One column: all sets at once, every posterior against the definition of the design."""
    design = data.draw(designs())
    prior = shares(data.draw, design.d)
    sets = named("x", design, all_sets(design))
    truth = np.array([data.draw(st.integers(0, design.d - 1)) for _ in range(len(sets))])
    found = believe(len(sets), prior, [sets.likelihood], truth)
    for row, members in enumerate(all_sets(design)):
        joint = [float(set_probability(design, frozenset(members), v)) * prior[v] for v in range(design.d)]
        posterior = np.array(joint) / sum(joint)
        assert found.belief[row] == pytest.approx(posterior.max())
        assert posterior[found.top[row]] == pytest.approx(posterior.max())
        assert found.truth_belief[row] == pytest.approx(posterior[truth[row]])
        assert found.left[row] == (posterior > 0).sum()
        assert found.moved[row] == pytest.approx(np.abs(posterior - prior).sum() / 2)
        best = np.isclose(posterior, posterior.max(), rtol=1e-9)
        assert found.right[row] == pytest.approx(best[truth[row]] / best.sum())


@given(st.data())
@settings(max_examples=15)
def test_minimality_by_enumeration(data) -> None:
    """All ways to hand out the values of a class, those kept in which a part breaks the requirement."""
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=2, max_size=2))
    n = sum(sizes)
    values = data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    part = np.repeat(np.arange(len(sizes)), sizes)
    kept = []
    for handed in permutations(values):
        counts = [np.bincount(np.array(handed)[part == one], minlength=3) for one in range(len(sizes))]
        if any(count.max() * 2 > size for count, size in zip(counts, sizes, strict=True)):
            kept.append([count / size for count, size in zip(counts, sizes, strict=True)])
    cut = Cut(np.zeros(n, int), part, np.array(values), 3)
    draws = 3_000
    found = learn(cut, [FrequencyLDiversity(on="x", l=2)], secret("exact", 3), np.zeros(0), draws)
    if not kept:
        assert not found.settled.any()
        return
    exact = np.mean(kept, axis=0)
    share = len(kept) / len(list(permutations(values)))
    assert abs(found.violations[0] - draws * share) <= 7 * (draws * share) ** 0.5
    assert np.abs(found.posterior - exact).max() < 7 * 0.5 / max(1, found.violations[0]) ** 0.5


@given(st.integers(3, 7), st.data())
def test_fitting_decoys_are_those_that_the_truth_explains(d, data) -> None:
    size = data.draw(st.integers(2, d - 1))
    picked = sorted(data.draw(st.permutations(range(d - 1)))[: size - 1])
    published = sorted(data.draw(st.permutations(range(d)))[:size])
    (found,) = truths(np.array([picked]), np.array([published])).tolist()
    for place, truth in enumerate(published):
        others = [value for value in range(d) if value != truth]
        assert found[place] == ({others[number] for number in picked} | {truth} == set(published))


@given(st.integers(1, 400), st.data())
def test_wilson_bounds_solve_their_equation(trials, data) -> None:
    hits = data.draw(st.integers(0, trials))
    share = hits / trials
    low, high = wilson(share, trials)
    assert 0 <= low <= share + 1e-12
    assert share - 1e-12 <= high <= 1
    for bound in (low, high):
        if 0 < bound < 1:
            assert abs(share - bound) == pytest.approx(1.959964 * (bound * (1 - bound) / trials) ** 0.5, abs=1e-6)
