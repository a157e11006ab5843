"""Closeness, changed values and values far apart at their ends, against enumeration."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from noren.designs import closeness
from noren.designs.decoys import DecoyDesign
from noren.designs.pram import PramDesign, rounded_parts
from noren.designs.semantic.compatibility import Compatibility, Search
from noren.designs.semantic.design import SemanticDesign
from noren.errors import PolicyError
from noren.secret import Keystream
from noren_papers.semantic.posterior import posterior_summary
from noren_papers.sensitive_qids.search import largest_p as closest_p
from noren_papers.sensitive_qids.search import search
from tests.oracles.posterior import posterior, total_variation
from tests.statements import expected_counts


def ranks(F: int) -> np.ndarray:
    return np.abs(np.subtract.outer(np.arange(float(F)), np.arange(float(F))))


def kinds(*kind: int) -> np.ndarray:
    """Distance 1 between values of different kinds, 0 within one."""
    return (np.array(kind)[:, None] != np.array(kind)[None, :]).astype(float)


# ---------------------------------------------------------------- closeness


@pytest.mark.parametrize(
    "counts", [np.array([[1, 2]]), np.array([0.5, 1]), np.array([], int), np.array([0, 0]), np.array([-1, 2])]
)
def test_closeness_is_asked_of_counts(counts: np.ndarray) -> None:
    with pytest.raises(ValueError, match="counts must be"):
        closest_p(counts, 0.2, 1, "equal")


def test_closeness_at_the_ends() -> None:
    counts = np.array([5, 3, 2])
    assert (closest_p(counts, 0.2, 3, "equal").p, closest_p(counts, 0.2, 3, "equal").rho) == (1.0, 1.0)
    for eta in (0, 4):
        with pytest.raises(ValueError, match=f"eta must lie between 1 and the 3 values of the domain. Got {eta}"):
            closest_p(counts, 0.2, eta, "equal")
    with pytest.raises(ValueError, match=r"t must be above 0. Got 0"):
        closest_p(counts, 0.0, 1, "equal")
    with pytest.raises(ValueError, match=r"'equal' or 'ordered'. Got 'tree'"):
        closest_p(counts, 0.2, 1, "tree")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"smallest_eta must be at least 1. Got 0"):
        search(counts, 0.2, "equal", smallest_eta=0)
    with pytest.raises(PolicyError, match="sets of 3 values from a domain of 3 carry no information"):
        search(counts, 0.2, "equal", smallest_eta=3)
    assert search(counts, 0.2, "equal", smallest_eta=2).design.eta == 2
    assert search(np.array([4]), 0.2, "equal").design == DecoyDesign.exact(1)


@pytest.mark.parametrize("absent", [0, 1, 3])
@pytest.mark.parametrize("t", [0.05, 0.3, 0.9])
def test_no_set_moves_the_distribution_further_and_some_set_that_far(absent: int, t: float) -> None:
    counts = np.array([9, 7, 5, 3, 2] + [0] * absent)
    shares = counts / counts.sum()
    for eta in range(1, len(counts)):
        found = closest_p(counts, t, eta, "equal")
        design = DecoyDesign(d=len(counts), eta=eta, p=found.p)
        moved = []
        for members in combinations(range(len(counts)), eta):
            if found.p < 1 or shares[list(members)].sum() > 0:
                moved.append(total_variation(posterior(shares, members, design), shares))
        assert max(moved) <= t * (1 + 1e-9)
        if found.p < 1:
            assert max(moved) == pytest.approx(t)


@pytest.mark.parametrize("heavy", [12, 5, 3, 1])
def test_the_nearest_totals_are_no_nearer_than_is_said(monkeypatch: pytest.MonkeyPatch, heavy: int) -> None:
    monkeypatch.setattr(closeness, "HEAVY", heavy)
    counts = np.array([900, 500, 300, 170, 70])
    for target in (0, 333, 970, 1940, 2500):
        found = closeness.nearest_sums(counts, target)
        assert len(found) == len(counts) + 1
        for j, sums in enumerate(found):
            totals = [sum(own) for own in combinations(counts.tolist(), j)]
            gap = min(abs(total - target) for total in totals)
            assert min(abs(one - target) for one in sums) <= gap
            assert all(min(totals) <= one <= max(totals) for one in sums)
            if heavy >= 5:
                assert min(abs(one - target) for one in sums) == gap


# ---------------------------------------------------------------- changed values


@pytest.mark.parametrize("parts", [None, (1, 2, 5)])
def test_a_changed_value_by_its_matrix(parts: tuple[int, ...] | None) -> None:
    design = PramDesign(d=3, keep=0.4, parts=parts)
    shares = np.full(3, 1 / 3) if parts is None else np.array(parts) / 8
    matrix = 0.4 * np.eye(3) + 0.6 * shares[None, :]
    assert design.inclusion_matrix() == pytest.approx(matrix)
    assert design.p_true == pytest.approx(float(shares @ np.diag(matrix)))
    assert design.rho == pytest.approx(
        max((matrix[v, u] / matrix[w, u]) for u in range(3) for v in range(3) for w in range(3))
    )
    assert design.expected_inside(np.array([0, 2, 2])) == pytest.approx(matrix[0, 0] + 2 * matrix[2, 2])
    x = np.array([5.0, 1.0, 2.0])
    assert expected_counts(design.inversion, x, 0) == pytest.approx(matrix.T @ x)
    assert expected_counts(design.inversion, x, 0, back=True) == pytest.approx(matrix @ x)
    assert design.inversion.invert(matrix.T @ x, 0) == pytest.approx(x)
    assert (design.inversion.undetermined, design.inversion.error) == (0, None)
    belief = matrix / matrix.sum(axis=0)
    assert design.worst_belief() == pytest.approx(belief.max())


def test_the_closed_inversion_loses_nothing() -> None:
    inversion = DecoyDesign(d=4, eta=2, p=0.5).inversion
    assert (inversion.undetermined, inversion.error) == (0, None)
    x = np.array([5.0, 1.0, 2.0, 0.0])
    assert inversion.invert(expected_counts(inversion, x, 0), 0) == pytest.approx(x)
    assert expected_counts(inversion, x, 0, back=True) == pytest.approx(expected_counts(inversion, x, 0))


@pytest.mark.parametrize(
    ("counts", "grid", "parts"),
    [([1, 0, 3], 100, (1, 1, 1)), ([40, 0, 40], 100, (2, 1, 2)), ([400, 100], 5, (4, 1)), ([0, 0], 9, (1, 1))],
)
def test_published_parts_stand_for_twenty_people(counts: list[int], grid: int, parts: tuple[int, ...]) -> None:
    assert rounded_parts(np.array(counts), grid) == parts


@pytest.mark.parametrize("rho", [1.00001, 1.5, 20.0])
def test_values_are_kept_as_often_as_the_ratio_permits(rho: float) -> None:
    design = PramDesign.within(4, rho, (1, 2, 3, 4))
    assert 1 < design.rho <= rho * (1 + 1e-12)
    more = PramDesign(d=4, keep=design.keep + 1.01e-4, parts=(1, 2, 3, 4))
    assert more.rho > rho


# ---------------------------------------------------------------- values that are far apart


@pytest.mark.parametrize(
    ("distances", "l", "largest"),
    [
        (ranks(5), 2, 2.0),
        (ranks(5), 3, 1.0),
        (ranks(7), 3, 2.0),
        (ranks(40), 2, 20.0),
        (ranks(3), 4, None),
        (kinds(0, 0, 1), 2, 1.0),
        (kinds(0, 0, 1), 3, None),
        (kinds(0, 0), 2, None),
    ],
)
def test_the_largest_threshold_leaves_everybody_a_set(distances: np.ndarray, l: int, largest: float | None) -> None:  # noqa: E741
    compatibility = Compatibility.from_distances(distances, 1.0)
    assert compatibility.largest_threshold(l) == largest


@pytest.mark.parametrize(
    ("distances", "threshold", "l", "lost"),
    [
        (ranks(1), 1.0, 1, False),
        (ranks(5), 2.0, 1, False),
        (ranks(2), 1.0, 2, True),
        (kinds(0, 1), 1.0, 2, True),
        (ranks(4), 2.0, 2, True),
        (ranks(5), 2.0, 2, False),
        (ranks(6), 2.0, 2, False),
        (ranks(6), 2.0, 3, True),
        (ranks(7), 2.0, 3, False),
        (kinds(0, 0, 1, 1), 1.0, 2, True),
        (kinds(0, 0, 1, 2), 1.0, 2, False),
        (kinds(0, 0, 1, 1), 1.0, 1, False),
    ],
)
def test_counts_can_be_recovered_with_one_value_more_than_the_sets_fill(distances, threshold, l, lost) -> None:  # noqa: E741
    compatibility = Compatibility.from_distances(distances, threshold)
    assert compatibility.identifiable(l) is not lost
    pairs = compatibility.pairs
    sets = [own for own in combinations(range(len(pairs)), l) if all(pairs[a, b] for a, b in combinations(own, 2))]
    inside = np.array([[float(v in own) for v in range(len(pairs))] for own in sets])
    assert (np.linalg.matrix_rank(inside) < len(pairs)) == lost


@pytest.mark.parametrize(
    ("distances", "why"),
    [
        (kinds(0, 0, 0, 1, 2), "one class holds 3 values, more than F/l = 5/2"),
        (kinds(0, 0, 1, 1), None),
    ],
)
def test_why_no_weights_make_all_sets_alike(distances: np.ndarray, why: str | None) -> None:
    design = SemanticDesign.make("flat", distances, 2, 1.0)
    assert (why is None) == (design.name == "semantic-flat")
    assert why is None or why in design.note


@pytest.mark.parametrize("seed", range(6))
def test_the_largest_clique_is_that_of_all_subsets(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 9
    pairs = np.triu(rng.random((n, n)) < 0.55, 1)
    pairs |= pairs.T
    neighbours = [sum(1 << int(w) for w in np.flatnonzero(row)) for row in pairs]

    def is_clique(own: tuple[int, ...]) -> bool:
        return all(pairs[a, b] for a, b in combinations(own, 2))

    for inside in (range(n), range(0, n, 2), [3]):
        best = max(k for k in range(n + 1) for own in combinations(inside, k) if is_clique(own))
        for enough in (best - 1, best, n):
            search = Search(neighbours, 10_000)
            assert search.largest(sum(1 << v for v in inside), enough) == min(best, enough)
            assert not search.exhausted


def test_a_search_looks_at_no_branch_that_cannot_be_larger() -> None:
    """Of a whole graph the first descent is a clique of all, after which every bound is met."""
    n = 12
    neighbours = [((1 << n) - 1) & ~(1 << v) for v in range(n)]
    search = Search(neighbours, 1000)
    assert search.largest((1 << n) - 1, n + 5) == n
    assert search.left == 1000 - n
    short = Search(neighbours, 3)
    assert short.largest((1 << n) - 1, n) < n
    assert short.exhausted
    just = Search(neighbours, n)
    assert just.largest((1 << n) - 1, n + 5) == n
    assert not just.exhausted


@pytest.mark.parametrize(
    "design",
    [
        SemanticDesign.make("simple", ranks(6), 2, 2.0),
        SemanticDesign.make("simple", ranks(8), 3, 2.0),
        SemanticDesign.make("uniform-sets", ranks(7), 3, 2.0),
        SemanticDesign.make("flat", ranks(7), 2, 2.0),
        SemanticDesign.make("flat", kinds(0, 0, 1, 1, 2, 2), 2, 1.0),
        SemanticDesign.make("flat", kinds(0, 0, 0, 1, 2), 2, 1.0),
        SemanticDesign.make("flat", kinds(0, 0, 0, 1, 1, 2, 3), 3, 1.0),
        SemanticDesign.make("uniform-sets", kinds(0, 0, 1, 2, 3), 3, 1.0),
    ],
    ids=lambda design: f"{design.name}-{design.d}-{design.eta}",
)
def test_sums_over_sets_are_those_of_all_sets(design: SemanticDesign) -> None:
    d, eta = design.d, design.eta
    sets = np.array(list(combinations(range(d), eta)))
    weights = design.set_weights(sets)
    chance = np.zeros((d, len(sets)))
    for row, (members, own) in enumerate(zip(sets.tolist(), weights, strict=True)):
        chance[members, row] = own
    assert chance.sum(axis=1) == pytest.approx(np.ones(d))
    inside = np.zeros((len(sets), d))
    np.put_along_axis(inside, sets, 1.0, axis=1)
    found = design.inclusion()
    assert found.exact
    assert found.matrix == pytest.approx(chance @ inside)
    scores = np.random.default_rng(d).normal(size=(3, d))
    assert design.second_moment(scores) == pytest.approx(((inside @ scores.T) ** 2).T @ chance.T)
    prior = np.random.default_rng(eta).dirichlet(np.ones(d))
    joint = chance * prior[:, None]
    seen = joint.sum(axis=0) > 0
    belief = joint[:, seen] / joint[:, seen].sum(axis=0)
    told = posterior_summary(design.law, prior)
    assert (told.exact, told.worst_exact, told.error) == (True, True, 0.0)
    assert told.worst == pytest.approx(belief.max())
    assert told.mean == pytest.approx((joint[:, seen] * belief).sum())
    assert told.bayes == pytest.approx(joint[:, seen].max(axis=0).sum())
    even = chance[:, chance.sum(axis=0) > 0]
    assert design.worst_belief() == pytest.approx((even / even.sum(axis=0)).max())
    codes = np.repeat(np.arange(d), 60)
    drawn = design.draw(codes, Keystream(), attribute="x").codes(eta).tolist()
    numbers = {tuple(members): row for row, members in enumerate(sets.tolist())}
    assert all(chance[code, numbers[tuple(own)]] > 0 for code, own in zip(codes.tolist(), drawn, strict=True))
