"""Semantic designs against the worked examples of paper 003 and against numbers computed apart from this code.

Unless a test says otherwise, its figures come from an exact enumeration of all draws, made once with another program;
values are numbered from 0.
"""

# ruff: noqa: E741  l is the paper's letter

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import noren.designs.semantic.compatibility as module
from noren.designs.semantic.compatibility import Compatibility, InfeasibleDesign, Line
from noren.designs.semantic.design import SemanticDesign
from noren.errors import DataError, NorenError
from noren.secret import Keystream
from noren_papers.semantic.posterior import posterior_summary
from tests.oracles import semantic as oracle

INCOME = [0.081, 0.137, 0.152, 0.172, 0.149, 0.102, 0.065, 0.044, 0.029, 0.019, 0.036, 0.008, 0.003, 0.003]
YEN = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30]  # millions, section 7.1


def ranks(F: int) -> np.ndarray:
    places = np.arange(F, dtype=float)
    return np.abs(places[:, None] - places)


def numbers(values: list[float]) -> np.ndarray:
    line = np.array(values, float)
    return np.abs(line[:, None] - line)


# ---------------------------------------------------------------- feasibility (Theorem 5.1, corrected)


@pytest.mark.parametrize(
    ("F", "d", "largest"),
    [
        (5, 2, [3, 2, 3, 2, 3]),
        (9, 2, [5, 4, 5, 4, 5, 4, 5, 4, 5]),
        (10, 2, [5] * 10),
        (14, 2, [7] * 14),
        (14, 3, [5, 5, 4, 5, 5, 4, 5, 5, 4, 5, 5, 4, 5, 5]),
        (14, 4, [4, 4, 3, 3, 4, 4, 3, 3, 4, 4, 3, 3, 4, 4]),
    ],
)
def test_largest_set_around_every_rank(F, d, largest):
    compatibility = Compatibility.from_distances(ranks(F), d)
    assert compatibility.structure.kind == "ranks"
    assert compatibility.largest_sets().tolist() == largest
    assert largest == [1 + i // d + (F - 1 - i) // d for i in range(F)]
    assert compatibility.largest_l() == F // d  # every value has a set iff l d <= F


def test_largest_set_around_every_income_in_yen():
    compatibility = Compatibility.from_distances(numbers(YEN), 7)
    assert compatibility.structure.kind == "line"
    assert compatibility.largest_sets().tolist() == [4, 4, 4, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4]


def test_three_apart_by_seven_is_impossible_by_rank_and_possible_in_yen():
    with pytest.raises(InfeasibleDesign) as caught:
        SemanticDesign.make("flat", ranks(14), 3, 7)
    assert caught.value.codes == tuple(range(14))
    assert (caught.value.largest_l, caught.value.largest_d) == (2, 4)
    problem = caught.value.problem("require[0]", [f"class {v}" for v in range(14)])
    assert "14 of 14 values cannot be in a set of 3 values that are all 7 or more apart" in problem.message
    assert "'class 0', 'class 1'" in problem.message
    assert "l = 2 works at d = 7; d = 4 works at l = 3" in problem.hint
    assert SemanticDesign.make("simple", numbers(YEN), 3, 7).eta == 3


def test_tenths_are_compared_with_a_tolerance():
    """0.3 - 0.1 is less than 0.2 in floating point; the two are compatible at 0.2 all the same."""
    compatibility = Compatibility.from_distances(numbers([0.1, 0.3, 0.5]), 0.2)
    assert compatibility.pairs.sum() == 6


EDUCATION = """Preschool Without
1st-4th Without/Elementary
5th-6th Without/Elementary
7th-8th Without/Elementary
9th Without/Secondary/Junior
10th Without/Secondary/Junior
11th Without/Secondary/Senior
12th Without/Secondary/Senior
HS-grad Without/Secondary/Senior
Some-college Post
Assoc-voc Post/Assoc
Assoc-acdm Post/Assoc
Bachelors Post/University
Prof-school Post/University
Masters Post/University/Grad
Doctorate Post/University/Grad"""


def education() -> tuple[list[str], np.ndarray]:
    """The paper's tree of the education attribute: heights of lowest common ancestors, root 4."""
    lines = [line.split() for line in EDUCATION.splitlines()]
    paths = [path.split("/") for _, path in lines]
    level = np.zeros((16, 16))
    for a, b in combinations(range(16), 2):
        shared = 0
        while shared < min(len(paths[a]), len(paths[b])) and paths[a][shared] == paths[b][shared]:
            shared += 1
        level[a, b] = level[b, a] = 4 - shared
    return [name for name, _ in lines], level


def test_the_education_tree_has_classes_at_each_depth():
    names, level = education()
    found = [Compatibility.from_distances(level, d) for d in (2, 3, 4)]
    assert [one.structure.kind for one in found] == ["classes"] * 3
    assert [one.largest_l() for one in found] == [12, 6, 2]
    doctorate = names.index("Doctorate")
    allowed = {names[u] for u in np.flatnonzero(found[0].pairs[doctorate])}
    assert {"Prof-school", "Bachelors"} <= allowed  # section 6.3 leaves them out for (3,2)
    assert "Masters" not in allowed


def test_flat_on_a_tree_exists_iff_no_class_is_too_large():
    _, level = education()
    flat = SemanticDesign.make("flat", level, 3, 2)
    assert flat.name == "semantic-flat"
    assert posterior_summary(flat.law).worst == pytest.approx(1 / 3, abs=1e-8)
    fallen = SemanticDesign.make("flat", level, 5, 3)  # five of sixteen values in one class: more than 16/5
    assert fallen.name == "semantic-balanced"
    assert "one class holds 5 values, more than F/l = 16/5" in fallen.note
    assert posterior_summary(fallen.law).worst == pytest.approx(5 / 16, rel=1e-6)


@pytest.mark.parametrize(
    ("F", "l", "d", "containing"),
    [
        (10, 4, 2, [20, 10, 14, 13, 13, 13, 13, 14, 10, 20]),
        (14, 2, 3, [11, 10, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 10, 11]),
        (14, 3, 3, [36, 28, 21, 23, 24, 24, 24, 24, 24, 24, 23, 21, 28, 36]),
        (14, 4, 3, [35, 20, 10, 19, 21, 18, 17, 17, 18, 21, 19, 10, 20, 35]),
    ],
)
def test_number_of_sets_around_every_value(F, l, d, containing):
    design = SemanticDesign.make("uniform-sets", ranks(F), l, d)
    sets = np.array(oracle.feasible_sets((ranks(F) >= d).tolist(), l))
    weights = design.set_weights(sets)
    np.testing.assert_allclose(weights, 1 / np.array(containing, float)[sets], rtol=1e-12)


# ---------------------------------------------------------------- what an adversary learns


@pytest.mark.parametrize(
    ("F", "l", "d", "kind", "prior", "worst", "bayes", "certain", "partial"),
    [
        (11, 3, 3, "simple", None, 0.454545455, 0.411111111, 0, 0),
        (11, 3, 3, "duplicate-processing", None, 1, 0.666666667, 0.333333333, 1),
        (11, 3, 3, "uniform-sets", None, 0.483870968, 0.424242424, 0, 0),
        (11, 3, 3, "flat", None, 0.333333333, 0.333333333, 0, 0),
        (9, 3, 2, "simple", None, 0.393258427, 0.366975309, 0, 0),
        (9, 3, 2, "duplicate-processing", None, 0.5, 0.37037037, 0, 0.222222222),
        (9, 3, 2, "uniform-sets", None, 0.405405405, 0.370707071, 0, 0),
        (14, 2, 3, "simple", INCOME, 0.985930172, 0.80809798, 0, 0),
        (14, 2, 3, "duplicate-processing", INCOME, 0.982857143, 0.801666667, 0, 0),
        (14, 2, 3, "flat", INCOME, 0.982857143, 0.801666667, 0, 0),
        (14, 3, 2, "simple", INCOME, 0.944627512, 0.632690909, 0, 0),
        (14, 3, 2, "duplicate-processing", INCOME, 0.982857143, 0.639227273, 0, 0.0454545455),
        (14, 3, 2, "uniform-sets", INCOME, 0.942418809, 0.631280413, 0, 0),
        (14, 3, 2, "flat", INCOME, 0.93989071, 0.626022222, 0, 0),
    ],
)
def test_posterior(F, l, d, kind, prior, worst, bayes, certain, partial):
    summary = posterior_summary(SemanticDesign.make(kind, ranks(F), l, d).law, prior)
    assert summary.exact
    found = (summary.worst, summary.bayes, summary.certain, summary.partial)
    np.testing.assert_allclose(found, (worst, bayes, certain, partial), atol=2e-9)


@pytest.mark.parametrize(
    ("kind", "worst", "success"),
    [
        ("simple", 0.411, 0.675),
        ("duplicate-processing", 0.500, 0.729),
        ("uniform-sets", 0.439, 0.673),
        ("flat", 0.333, 0.654),
    ],
)
def test_posterior_at_14_3_3(kind, worst, success):
    """The design note's own table: worst P(v | R) under a uniform prior, Bayes success under the income prior."""
    design = SemanticDesign.make(kind, ranks(14), 3, 3)
    assert posterior_summary(design.law).worst == pytest.approx(worst, abs=5e-4)
    assert posterior_summary(design.law, np.array(INCOME)).bayes == pytest.approx(success, abs=5e-4)


def test_duplicate_processing_leaks():
    """At (11,3,3) the set {1,4,8} (counting from 1) can only come from 8; eleven sets of this sort, a third of all."""
    design = SemanticDesign.make("duplicate-processing", ranks(11), 3, 3)
    np.testing.assert_allclose(design.set_weights(np.array([[0, 3, 7]])), [[0, 0, 1 / 3]])
    sets = np.array(oracle.feasible_sets((ranks(11) >= 3).tolist(), 3))
    possible = (design.set_weights(sets) > 0).sum(axis=1)
    assert (possible == 1).sum() == 11
    assert posterior_summary(design.law).certain == pytest.approx(1 / 3)
    assert "leaks" in design.warning
    third = posterior_summary(SemanticDesign.make("duplicate-processing", ranks(14), 3, 3).law)
    assert third.partial == pytest.approx(1 / 3, abs=5e-3)


# ---------------------------------------------------------------- duplicate-processing (section 5.3)


@pytest.mark.parametrize(("first", "left"), [(110, [70, 80, 90]), (70, [90, 100, 110])])
def test_what_duplicate_processing_leaves(first, left):
    """Incomes 30K..110K, d = 2, true 50K: the second decoy comes from three values, each with probability 1/3."""
    incomes = list(range(30, 120, 10))
    rest = oracle.after_removal(incomes, 50, 2)
    assert oracle.after_removal(rest, first, 2) == left
    design = SemanticDesign.make("duplicate-processing", ranks(9), 3, 2)
    for second in incomes:
        both_ways = sum(
            a in rest and b in oracle.after_removal(rest, a, 2) for a, b in ((first, second), (second, first))
        )
        members = sorted({50, first, second})
        if len(members) == 3:
            codes = np.array([[incomes.index(one) for one in members]])
            chance = design.set_weights(codes)[0, members.index(50)]
            assert chance == pytest.approx(both_ways / (6 * 3))


def test_duplicate_processing_says_what_it_needs():
    assert SemanticDesign.make("duplicate-processing", ranks(11), 3, 3).eta == 3  # 11 = (3-1)(2*3-1) + 1
    with pytest.raises(InfeasibleDesign, match="needs at least 11 values, and the domain has 10") as caught:
        SemanticDesign.make("duplicate-processing", ranks(10), 3, 3)
    assert (caught.value.largest_l, caught.value.largest_d) == (2, 2)
    with pytest.raises(NorenError, match="ranks only"):
        SemanticDesign.make("duplicate-processing", numbers(YEN), 3, 2)


# ---------------------------------------------------------------- inclusion probabilities


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        (
            "simple",
            [
                [1, 0, 0.314285714286, 0.278571428571, 0.271428571429, 0.271428571429, 0.271428571429, 0.278571428571,
                 0.314285714286],
                [0, 1, 0, 0.375, 0.319444444444, 0.305555555556, 0.305555555556, 0.319444444444, 0.375],
                [0.416666666667, 0, 1, 0, 0.352777777778, 0.297222222222, 0.283333333333, 0.297222222222,
                 0.352777777778],
            ],
        ),
        (
            "uniform-sets",
            [
                [1, 0, 1 / 3, 4 / 15, 4 / 15, 4 / 15, 4 / 15, 4 / 15, 1 / 3],
                [0, 1, 0, 0.4, 0.3, 0.3, 0.3, 0.3, 0.4],
                [5 / 11, 0, 1, 0, 4 / 11, 3 / 11, 3 / 11, 3 / 11, 4 / 11],
            ],
        ),
        ("duplicate-processing", [[1, 0, *[1 / 3] * 6, 0], [0, 1, 0, *[1 / 3] * 6], [1 / 3, 0, 1, 0, *[1 / 3] * 5]]),
        ("flat", [[1, 0, 0.4, 0.3, 0.3, 0.3, 0.3, 0.4, 0]]),
    ],
)  # fmt: skip
def test_inclusion_at_9_3_2(kind, rows):
    found = SemanticDesign.make(kind, ranks(9), 3, 2).inclusion()
    assert found.exact
    np.testing.assert_allclose(found.matrix[: len(rows)], rows, atol=1e-11)
    np.testing.assert_allclose(found.matrix, found.matrix[::-1, ::-1], atol=1e-12)


def test_flat_weights_at_9_3_2():
    """The flat product design on the line 0..8 (not the closed form on ranks): weights and first rows."""
    line = Compatibility(9, 2.0, Line(positions=tuple(map(float, range(9)))))
    design = SemanticDesign.make("flat", line, 3)
    half = [0.664571011769, 1.044957875043, 1.180579044653, 1.151693832221, 1.121644997369]
    weights = np.array(design.weights) / np.array([*half, *half[3::-1]])
    np.testing.assert_allclose(weights, weights[0], rtol=1e-8)
    first = [1, 0, 0.364021241457, 0.277973888825, 0.272656015723, 0.277973888825, 0.290352066476, 0.287394237796,
             0.229628660899]  # fmt: skip
    np.testing.assert_allclose(design.inclusion().matrix[0], first, atol=1e-8)


@pytest.mark.parametrize(("F", "l", "d", "off"), [(9, 3, 2, 0.08), (14, 5, 2, 0.18), (14, 2, 3, 0.0)])
def test_equation_2_is_not_the_simple_design_beyond_two_values(F, l, d, off):
    exact = SemanticDesign.make("simple", ranks(F), l, d).inclusion().matrix
    paper = np.array(oracle.equation_2((ranks(F) >= d).tolist(), l))
    assert np.abs(exact - paper).max() == pytest.approx(off, abs=0.005)


def test_obesity_inclusion():
    """Table 9 to Table 10 of the paper, F = 5, l = d = 2: equation 2 is exact for two values."""
    exact = SemanticDesign.make("simple", ranks(5), 2, 2).inclusion().matrix
    np.testing.assert_allclose(exact[0], [1, 0, 1 / 3, 1 / 3, 1 / 3])
    counts = np.linalg.solve(exact.T, np.array([143, 72, 60, 86, 99], float))
    np.testing.assert_allclose(counts, [117.75, 52.5, 11.5, 20.5, 27.75])


# ---------------------------------------------------------------- identifiability


@pytest.mark.parametrize(("F", "l", "d"), [(12, 3, 4), (14, 7, 2), (10, 2, 5)])
@pytest.mark.parametrize("kind", ["simple", "uniform-sets", "flat"])
def test_block_totals_are_lost_at_equality(F, l, d, kind):
    """F = l d: feasible for every value, but the counts cannot be recovered; one value more and they can."""
    assert SemanticDesign.make(kind, ranks(F), l, d).identifiability() == (False, float("inf"))
    fine, condition = SemanticDesign.make(kind, ranks(F + 1), l, d).identifiability()
    assert fine
    assert condition < 1e6


def test_a_tree_needs_one_class_more_than_l():
    groups = np.array([0, 0, 1, 1, 2, 2])
    level = (groups[:, None] != groups).astype(float)
    assert not Compatibility.from_distances(level, 1).identifiable(3)
    assert Compatibility.from_distances(level, 1).identifiable(2)
    assert SemanticDesign.make("uniform-sets", level, 3, 1).identifiability() == (False, float("inf"))
    assert SemanticDesign.make("uniform-sets", level, 2, 1).identifiability()[0]


# ---------------------------------------------------------------- what a design refuses


def test_a_search_that_settles_nothing_says_so(monkeypatch):
    monkeypatch.setattr(module, "SEARCH_STEPS", 3)
    points = np.array([(x, y) for x in range(8) for y in range(8)], float)
    grid = np.sqrt(((points[:, None] - points) ** 2).sum(axis=2))
    with pytest.raises(NorenError, match="did not find how large"):
        SemanticDesign.make("simple", grid, 16, 2.5)


def test_published_designs_are_checked_when_read():
    design = SemanticDesign.make("flat", numbers(YEN), 3, 2)
    published = design.model_dump(mode="json")
    assert SemanticDesign.model_validate(published) == design
    for change in (
        {"weights": None},
        {"weights": [1.0] * 13},
        {"weights": [0.0] * 14},
        {"eta": 15},
        {"name": "semantic-simple"},
        {"structure": {"kind": "line", "positions": [1.0, 2.0]}},
        {"seed": 1},
    ):
        with pytest.raises(ValueError):
            SemanticDesign.model_validate(published | change)


def test_sets_outside_the_design_have_no_probability():
    flat = SemanticDesign.make("flat", ranks(9), 3, 2)
    weights = flat.set_weights(np.array([[0, 1, 4], [0, 4, 8], [0, 3, 6]]))
    assert (weights[:2] == 0).all()  # two too close; and 8 next to 0 on the circle, which the closed form never draws
    assert (weights[2] == 1 / 10).all()
    with pytest.raises(ValueError, match="rows of 3 codes below 9"):
        flat.set_weights(np.array([[0, 3, 9]]))
    with pytest.raises(DataError, match="outside its domain of 9 values"):
        flat.draw(np.array([9]), Keystream(), attribute="income")


def test_orders_are_summed_up_to_a_size():
    with pytest.raises(NorenError, match="l = 17 exceeds 16"):
        SemanticDesign.make("simple", ranks(40), 17, 2)
    assert SemanticDesign.make("flat", ranks(40), 17, 2).eta == 17
