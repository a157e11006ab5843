"""Safe bounds, sums of groups, changed values and values without an order, against enumeration."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from noren.designs import closeness
from noren.designs.closeness import largest_ps
from noren.designs.decoys import DecoyDesign
from noren.designs.inversion import Groups, along, stretched
from noren.designs.pram import PramDesign
from noren.designs.semantic.compatibility import Compatibility, InfeasibleDesign
from tests.oracles import closeness as oracle
from tests.statements import expected_counts

COUNTS = np.array([7, 0, 1, 4, 0, 2, 9, 3])
"""Six of eight values occur."""


def worst(t: Fraction) -> list[Fraction]:
    """max H of sets of j occurring values, by every one of them."""
    present = np.flatnonzero(COUNTS).tolist()
    shares = oracle.distribution(COUNTS.tolist())
    out = []
    for j in range(len(present) + 1):
        heights = []
        for members in combinations(present, j):
            m = sum((shares[v] for v in members), Fraction(0))
            moved = [shares[v] * ((v in members) - m) for v in range(len(shares))]
            heights.append(oracle.distance(moved, [Fraction(0)] * len(shares), "ordered") - t * m)
        out.append(max(heights))
    return out


@pytest.mark.parametrize("t", [Fraction(1, 16), Fraction(1, 4), Fraction(1, 2)])
@pytest.mark.parametrize("listed", [120, 0])
def test_the_worst_set_in_an_order_is_found_or_bounded_from_above(
    monkeypatch: pytest.MonkeyPatch, t: Fraction, listed: int
) -> None:
    """So many sets times values are listed: all of them, or none."""
    monkeypatch.setattr(closeness, "LISTED", listed)
    heights = worst(t)
    for found in largest_ps(COUNTS, float(t), "ordered"):
        exact = max(heights[max(0, found.eta - 2) : found.eta + 1])  # two values are absent and fill sets up
        assert found.exact is (listed == 120)
        assert found.worst >= float(exact)
        if found.exact:
            assert found.worst == pytest.approx(float(exact), abs=1e-12)


def test_coins_from_safe_bounds_keep_every_set_within_t(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closeness, "LISTED", 0)
    counts = np.ones(6, np.int64)
    for found in largest_ps(counts, 0.25, "ordered"):
        exact = oracle.worst_height(counts.tolist(), found.eta, Fraction(1, 4), "ordered")
        assert float(exact) - 1e-12 <= found.worst
        assert max(oracle.all_distances(counts.tolist(), found.eta, found.p, "ordered")) <= Fraction(1, 4)


# ---------------------------------------------------------------- tables


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_values_are_summed_and_multiplied_along_one_dimension(axis: int) -> None:
    rng = np.random.default_rng(axis)
    table = rng.integers(0, 9, (3, 3, 3)).astype(float)
    groups = Groups(np.array([1, -1, 0]), 2)
    expected = np.stack([table.take(2, axis), table.take(0, axis)], axis)
    assert groups.sum(table, axis).tolist() == expected.tolist()
    assert (along(groups.membership, table, axis) == expected).all()
    assert groups.sizes.tolist() == [1, 1]
    once = stretched(np.array([1.0, 2.0, 3.0]), axis, 3)
    assert once.shape == tuple(3 if place == axis else 1 for place in range(3))
    assert (table * once).take(2, axis).tolist() == (table.take(2, axis) * 3).tolist()


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("eta", "p"), [(2, 1.0), (2, 0.5), (1, 0.3)])
def test_a_table_is_inverted_line_by_line(eta: int, p: float, axis: int) -> None:
    design = DecoyDesign(d=4, eta=eta, p=p)
    counts = np.random.default_rng(eta).integers(0, 9, (4, 4)).astype(float)
    inside = along(design.inclusion_matrix(), counts, axis)
    assert expected_counts(design.inversion, counts, axis) == pytest.approx(inside)
    assert design.inversion.invert(inside, axis) == pytest.approx(counts)
    for groups in (Groups(np.array([0, 1, 0, -1]), 2), Groups(np.arange(4), 4, is_identity=True)):
        scoring = design.inversion.scoring(groups)
        found = scoring.second_moments(counts, axis)
        lines = [scoring.second_moments(counts.take(i, 1 - axis), 0) for i in range(4)]
        assert found == pytest.approx(np.stack(lines, 1 - axis))


# ---------------------------------------------------------------- changed values


@pytest.mark.parametrize("parts", [None, (1, 2, 5)])
def test_scores_of_changed_values_by_their_matrix(parts: Any) -> None:
    design = PramDesign(d=3, keep=0.4, parts=parts)
    scores = np.array([[1.0, -2.0, 0.5], [0.0, 3.0, 1.0]])
    matrix = design.inclusion_matrix()
    assert design.second_moment(scores) == pytest.approx(scores**2 @ matrix.T)
    words = "uniform" if parts is None else "1,2,5"
    assert (words in design.title) is (parts is not None)
    told = "" if parts is None else "the matrix discloses the exact distribution, rounded to 8 parts"
    assert design.tells == told
    shares = np.full(3, 1 / 3) if parts is None else np.array(parts) / 8
    for rho in (1.5, 4.0):
        within = PramDesign.within(3, rho, parts)
        assert within.rho <= rho
        more = PramDesign(d=3, keep=within.keep + 1e-4, parts=parts)
        assert more.rho > rho, "the largest of four decimals"
        assert within.rho == pytest.approx(1 + within.keep / ((1 - within.keep) * shares.min()))


# ---------------------------------------------------------------- values without an order

CYCLE = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2), (5, 0)]
"""A ring of five values that lie apart from their neighbours, one pair across, and a sixth apart from one alone."""


def around() -> np.ndarray:
    out = np.zeros((6, 6))
    for a, b in CYCLE:
        out[a, b] = out[b, a] = 1.0
    return out


def test_the_largest_sets_around_values_without_an_order() -> None:
    distances = around()
    compatibility = Compatibility.from_distances(distances, 1.0)
    assert compatibility.chain is None

    def largest(value: int) -> int:
        return max(
            len(own)
            for size in range(1, 7)
            for own in combinations(range(6), size)
            if value in own and all(distances[a, b] >= 1 for a, b in combinations(own, 2))
        )

    sizes = [largest(value) for value in range(6)]
    assert sizes == [3, 3, 3, 2, 2, 2]
    assert compatibility.largest_sets().tolist() == sizes
    assert compatibility.largest_l() == 2
    for size in (1, 2, 3, 4):
        alone = [value for value in range(6) if sizes[value] < size]
        assert compatibility.without_partners(size).tolist() == alone
    compatibility.check(2)
    with pytest.raises(InfeasibleDesign) as caught:
        compatibility.check(3)
    assert (caught.value.codes, caught.value.largest_l) == ((3, 4, 5), 2)
    labels = ["a", "b", "c", "d", None, "f"]
    told = caught.value.problem("require", labels)
    assert told.message.endswith("'d', 'f'. Values of fewer than five records are not shown.")
    assert told.hint == caught.value.hint
    assert caught.value.problem("require", list("abcdef")).message.endswith(": 'd', 'e', 'f'.")
    assert caught.value.problem("require", [None] * 6).message.endswith(
        "or more apart. Values of fewer than five records are not shown."
    )


@pytest.mark.parametrize(
    ("distances", "threshold", "said"),
    [
        (np.ones((2, 3)), 1.0, "a symmetric matrix"),
        (np.array([[0.0, 1.0], [2.0, 0.0]]), 1.0, "a symmetric matrix"),
        (np.array([[0.0, -1.0], [-1.0, 0.0]]), 1.0, "a symmetric matrix"),
        (np.array([[0.0, 1.0], [1.0, 0.0]]), 0.0, "must be positive. Got 0.0"),
    ],
)
def test_what_is_no_distance_is_refused(distances: np.ndarray, threshold: float, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Compatibility.from_distances(distances, threshold)
