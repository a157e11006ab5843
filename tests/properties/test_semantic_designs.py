"""The semantic designs against enumeration: what they draw, with which probability, and what sums over it come to."""

# ruff: noqa: E741  l is the paper's letter

from __future__ import annotations

from fractions import Fraction
from math import log, prod, sqrt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from noren.designs.semantic.compatibility import Compatibility, InfeasibleDesign, Table
from noren.designs.semantic.design import SemanticDesign
from noren.designs.semantic.law import CHUNK, inclusion, second_moments
from noren.errors import NorenError
from noren.secret import Keystream, RecordStream, Secret
from noren_papers.semantic.posterior import posterior_summary
from tests.oracles import draw as word_oracle
from tests.oracles import semantic as oracle

KINDS = ("simple", "duplicate-processing", "uniform-sets", "flat")
ALARM = 1e-12  # chance of a false alarm per example; examples stay below a thousand
DRAWS = 4000


@st.composite
def distances(draw: st.DrawFn) -> tuple[str, np.ndarray, float]:
    shape = draw(st.sampled_from(["ranks", "line", "classes", "matrix"]))
    F = draw(st.integers(2, 9))
    if shape == "ranks":
        ranks = np.arange(F, dtype=float)
        return shape, np.abs(ranks[:, None] - ranks), float(draw(st.integers(1, 4)))
    if shape == "line":
        numbers = np.array(draw(st.lists(st.integers(0, 20), min_size=F, max_size=F))) / 10  # any order, repeats too
        return shape, np.abs(numbers[:, None] - numbers), draw(st.integers(1, 9)) / 10
    if shape == "classes":
        groups = np.array(draw(st.lists(st.integers(0, 4), min_size=F, max_size=F)))
        return shape, (groups[:, None] != groups).astype(float), 1.0
    bits = draw(st.lists(st.booleans(), min_size=F * F, max_size=F * F))
    upper = np.triu(np.array(bits, float).reshape(F, F), 1)
    return shape, upper + upper.T, 1.0


def feasible_pairs(matrix: np.ndarray, threshold: float) -> list[list[bool]]:
    """From the definition, in exact arithmetic: the test's distances are tenths."""
    F = len(matrix)
    least = Fraction(round(threshold * 10), 10)
    return [[a != b and Fraction(round(matrix[a, b] * 10), 10) >= least for b in range(F)] for a in range(F)]


@st.composite
def designs(draw: st.DrawFn) -> tuple[SemanticDesign, list[list[bool]]]:
    _, matrix, threshold = draw(distances())
    kind, l = draw(st.sampled_from(KINDS)), draw(st.integers(1, min(4, len(matrix))))
    try:
        design = SemanticDesign.make(kind, matrix, l, threshold)
    except NorenError:
        assume(False)
    return design, feasible_pairs(matrix, threshold)


def laws(design: SemanticDesign, pairs: list[list[bool]]) -> list[oracle.Law]:
    F, l = design.d, design.eta
    if design.name == "semantic-simple":
        return [oracle.simple(pairs, l, v) for v in range(F)]
    if design.name == "semantic-duplicate-processing":
        return [oracle.duplicate(F, l, design.structure.step, v) for v in range(F)]
    if design.name == "semantic-flat" and design.weights is None:
        return [oracle.circular(F, l, design.structure.step, v) for v in range(F)]
    if design.name == "semantic-balanced":
        return [_balanced(design, pairs, v) for v in range(F)]
    weights = [Fraction(w) for w in design.weights or [1.0] * F]
    return [oracle.product_law(pairs, l, v, weights) for v in range(F)]


def _balanced(design: SemanticDesign, pairs: list[list[bool]], v: int) -> oracle.Law:
    """A type by its published chance, then one value of every other kind: kinds are values with the same partners."""
    seen = list(dict.fromkeys(tuple(row) for row in pairs))
    kind = [seen.index(tuple(row)) for row in pairs]
    out: oracle.Law = {}
    for members in oracle.feasible_sets(pairs, design.eta):
        row = tuple(sorted(kind[u] for u in members))
        if v in members and row in design.types:
            chance = Fraction(design.chances[design.types.index(row)][row.index(kind[v])])
            others = [kind.count(k) for k in row if k != kind[v]]
            out[tuple(sorted(members))] = chance / prod(others)
    return {members: chance for members, chance in out.items() if chance}


@settings(max_examples=150, deadline=None)
@given(distances())
def test_structure_and_feasibility_equal_enumeration(case):
    _, matrix, threshold = case
    pairs, F = feasible_pairs(matrix, threshold), len(matrix)
    compatibility = Compatibility.from_distances(matrix, threshold)
    assert compatibility.pairs.tolist() == pairs
    expected = [0] * F
    for l in range(1, F + 1):
        for members in oracle.feasible_sets(pairs, l):
            for v in members:
                expected[v] = l
    assert compatibility.largest_sets().tolist() == expected
    plain = Compatibility(F, threshold, Table(compatible=tuple(tuple(map(int, row)) for row in pairs)), matrix)
    assert plain.largest_sets().tolist() == expected
    for l in range(2, F + 1):
        alone = [v for v in range(F) if expected[v] < l]
        assert compatibility.without_partners(l).tolist() == alone == plain.without_partners(l).tolist()
        if alone:
            with pytest.raises(InfeasibleDesign) as caught:
                compatibility.check(l)
            assert list(caught.value.codes) == alone
            assert caught.value.largest_l == min(expected)
            best = caught.value.largest_d
            working = [t for t in np.unique(matrix[matrix > 0]) if not _alone_at(matrix, t, l)]
            assert best == (max(working) if working else None)


def _alone_at(matrix: np.ndarray, threshold: float, l: int) -> bool:
    sets = oracle.feasible_sets(feasible_pairs(matrix, threshold), l)
    return {v for s in sets for v in s} != set(range(len(matrix)))


@settings(max_examples=60, deadline=None)
@given(distances(), st.integers(2, 4))
def test_identifiable_iff_the_sets_tell_all_values_apart(case, l):
    _, matrix, threshold = case
    compatibility = Compatibility.from_distances(matrix, threshold)
    assume(not compatibility.without_partners(l).size)
    sets = oracle.feasible_sets(feasible_pairs(matrix, threshold), l)
    incidence = np.array([[v in s for v in range(len(matrix))] for s in sets], float)
    assert compatibility.identifiable(l) == (np.linalg.matrix_rank(incidence) == len(matrix))


@settings(max_examples=120, deadline=None)
@given(designs(), st.randoms(use_true_random=False))
def test_likelihood_inclusion_and_moments_equal_enumeration(case, random):
    design, pairs = case
    expected = laws(design, pairs)
    sets = oracle.feasible_sets(pairs, design.eta)
    weights = design.set_weights(np.array(sets))
    for row, members in zip(weights, sets, strict=True):
        exact = [float(expected[v].get(members, 0)) for v in members]
        np.testing.assert_allclose(row, exact, rtol=1e-9, atol=1e-15)
    found = design.inclusion()
    assert found.exact
    np.testing.assert_allclose(found.matrix, oracle.inclusion(expected), rtol=1e-9, atol=1e-12)
    scores = [[random.uniform(-1, 1) for _ in range(design.d)] for _ in range(3)]
    moments = second_moments(design.law, np.array(scores))
    assert moments.exact
    np.testing.assert_allclose(
        moments.values, [oracle.second_moment(expected, row) for row in scores], rtol=1e-9, atol=1e-12
    )
    assert SemanticDesign.model_validate_json(design.model_dump_json()) == design


@settings(max_examples=80, deadline=None)
@given(designs(), st.binary(min_size=32, max_size=32))
def test_draws_come_with_their_probability(case, key):
    """Bernstein's bound for each set, and as many sets as there are: false alarms below ALARM."""
    design, pairs = case
    expected = laws(design, pairs)
    codes = np.repeat(np.arange(design.d), DRAWS)
    drawn = design.draw(codes, Keystream(Secret(key), salt=key), attribute="a")
    rows = drawn.codes(design.eta).reshape(design.d, DRAWS, design.eta)
    cells = sum(map(len, expected))
    for v, law in enumerate(expected):
        found, counts = np.unique(rows[v], axis=0, return_counts=True)
        seen = {tuple(row): int(count) for row, count in zip(found.tolist(), counts, strict=True)}
        assert set(seen) <= {members for members, p in law.items() if p > 0}
        for members, exact in law.items():
            p, bound = float(exact), log(2 * cells / ALARM)
            slack = sqrt(2 * p * (1 - p) * bound / DRAWS) + bound / (3 * DRAWS) + 2**-50
            assert abs(seen.get(members, 0) / DRAWS - p) <= slack


@settings(max_examples=60, deadline=None)
@given(designs(), st.binary(min_size=32, max_size=32), st.data())
def test_memoised_sets_depend_on_their_record_alone(case, key, data):
    design, _ = case
    n = data.draw(st.integers(1, 40))
    records = [f"person {number}" for number in range(n)]
    codes = np.array(data.draw(st.lists(st.integers(0, design.d - 1), min_size=n, max_size=n)))
    stream = RecordStream(Secret(key))
    whole = design.draw(codes, stream, attribute="job", digests=stream.digests(pa.array(records)))
    order = np.array(data.draw(st.permutations(range(n))))
    again = RecordStream(Secret(key))
    copy = SemanticDesign.model_validate_json(design.model_dump_json())
    for part in np.split(order, sorted(data.draw(st.lists(st.integers(0, n), max_size=3)))):
        digests = again.digests(pa.array([records[row] for row in part], pa.string()))
        drawn = copy.draw(codes[part], again, attribute="job", digests=digests)
        assert (drawn.data == whole.data[part]).all()


@settings(max_examples=40, deadline=None)
@given(
    st.binary(min_size=32, max_size=32), st.sampled_from([(9, 3, 2), (14, 3, 3), (70, 4, 5), (148, 5, 10)]), st.data()
)
def test_memoised_sets_equal_the_oracles(key, parameters, data):
    """The use of words is part of what earlier releases rely on."""
    F, l, d = parameters
    ranks = np.arange(F, dtype=float)
    matrix = np.abs(ranks[:, None] - ranks)
    v = data.draw(st.integers(0, F - 1))
    stream = RecordStream(Secret(key))
    digests = stream.digests(pa.array(["somebody"]))

    def drawn(kind: str) -> set[int]:
        design = SemanticDesign.make(kind, matrix, l, d)
        return set(design.draw(np.array([v]), stream, attribute="job", digests=digests).codes(l)[0].tolist())

    def expected(need: int, draw) -> set[int]:
        attempt, found = 0, None
        while found is None:
            found = draw(word_oracle.cell_words(key, "job", "somebody", v, need, attempt))
            attempt += 1
        return found

    assert drawn("flat") == expected(l - 1, lambda words: oracle.flat_from_words(words, F, l, d, v))
    assert drawn("duplicate-processing") == expected(
        l - 1, lambda words: oracle.duplicate_from_words(words, F, l, d, v)
    )
    if F <= 14:
        pairs = feasible_pairs(matrix, d)
        assert drawn("simple") == expected(
            2 * (l - 1), lambda words: oracle.simple_from_words(words, list(range(F)), pairs, l, v)
        )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", ["ranks", "line", "classes"])
def test_wide_domains_give_feasible_sets_with_the_truth(kind, shape):
    """Beyond 64 values sets are rows, and threads share the work; nothing may change with their number."""
    rng = np.random.default_rng(5)
    F, l = 100, 4
    if shape == "ranks":
        matrix, threshold = np.abs(np.subtract.outer(np.arange(F), np.arange(F))).astype(float), 9.0
    elif shape == "line":
        numbers = rng.permutation(np.arange(F)) + rng.uniform(0, 0.5, F)
        matrix, threshold = np.abs(numbers[:, None] - numbers), 9.0
    else:
        groups = rng.permutation(np.arange(F) % 11)
        matrix, threshold = (groups[:, None] != groups).astype(float), 1.0
    if kind == "duplicate-processing" and shape != "ranks":
        with pytest.raises(NorenError, match="ranks only"):
            SemanticDesign.make(kind, matrix, l, threshold)
        return
    design = SemanticDesign.make(kind, matrix, l, threshold)
    assert design.structure.kind == shape
    assert design.name == f"semantic-{kind}"
    codes = rng.integers(0, F, 300_000)
    stream = RecordStream(Secret(bytes(32)))
    digests = stream.digests(pa.array(np.arange(len(codes))))
    cells = design.draw(codes, stream, attribute="a", digests=digests, threads=3)
    assert (cells.data == design.draw(codes, stream, attribute="a", digests=digests, threads=1).data).all()
    rows = cells.codes(l)
    assert cells.contains(codes).all()
    assert (np.diff(rows.astype(int), axis=1) > 0).all()
    pairs = matrix >= threshold
    for a in range(l):
        for b in range(a):
            assert pairs[rows[:, a], rows[:, b]].all()
    assert (design.set_weights(rows[:1000]) > 0).sum(axis=1).min() >= 1


@pytest.mark.parametrize("kind", ["simple", "uniform-sets", "flat"])
def test_a_matrix_beyond_64_values_draws_feasible_sets(kind):
    """Neither ranks, a line nor classes: a grid of points in the plane, wider than one machine word."""
    points = np.array([(x, y) for x in range(10) for y in range(7)], float)
    matrix = np.sqrt(((points[:, None] - points) ** 2).sum(axis=2))
    design = SemanticDesign.make(kind, matrix, 4, 4.0)
    assert design.structure.kind == "matrix"
    codes = np.arange(70).repeat(50)
    cells = design.draw(codes, Keystream(), attribute="a")
    rows = cells.codes(4)
    assert cells.contains(codes).all()
    for a in range(4):
        for b in range(a):
            assert (matrix[rows[:, a], rows[:, b]] >= 4 - 1e-9).all()
    found = design.inclusion()
    assert found.exact
    np.testing.assert_allclose(found.matrix.sum(axis=1), 4, rtol=1e-9)


@settings(max_examples=25, deadline=None)
@given(designs(), st.randoms(use_true_random=False))
def test_sampling_stands_in_where_sets_are_too_many(case, random):
    """With no list and no closed form allowed, sums are Monte Carlo means; Hoeffding's bound, false alarms < ALARM."""
    design, pairs = case
    assume(1 < design.eta < design.d)
    expected, law = laws(design, pairs), _Unlisted(design)
    each = 40_000 // design.d
    slack = sqrt(log(2 * design.d**2 / ALARM) / (2 * each))
    sampled = inclusion(law, draws=40_000)
    assert not sampled.exact
    assert 0 <= sampled.error <= 0.5 / sqrt(each)
    np.testing.assert_allclose(sampled.matrix, oracle.inclusion(expected), atol=slack)
    scores = [[random.uniform(-1, 1) for _ in range(design.d)] for _ in range(2)]
    moments = second_moments(law, np.array(scores), draws=40_000)
    exact = [oracle.second_moment(expected, row) for row in scores]
    assert not moments.exact
    np.testing.assert_allclose(moments.values, exact, atol=slack * design.eta**2)  # a sum of l scores in [-1, 1]
    prior = np.array([random.uniform(0.1, 1) for _ in range(design.d)])
    known, seen = posterior_summary(design.law, prior), posterior_summary(law, prior, draws=1)
    assert (known.exact, seen.exact, seen.worst_exact) == (True, False, False)
    for name in ("mean", "bayes", "certain", "partial"):
        assert abs(getattr(known, name) - getattr(seen, name)) <= sqrt(log(8 / ALARM) / (2 * CHUNK))
    assert seen.worst <= known.worst + 1e-9
    programme = law.inner.worst_posterior(prior / prior.sum())
    assert programme is None or programme == pytest.approx(known.worst, rel=1e-9)


class _Unlisted:
    """A law of which only drawing and likelihood are known."""

    def __init__(self, design: SemanticDesign) -> None:
        self.inner = design.law
        self.F, self.l = design.d, design.eta
        self.sample, self.likelihood = self.inner.sample, self.inner.likelihood

    def inclusion(self) -> None:
        return None

    def second_moments(self, scores: np.ndarray) -> None:
        return None

    def listed(self) -> None:
        return None

    def worst_posterior(self, prior: np.ndarray) -> None:
        return None
