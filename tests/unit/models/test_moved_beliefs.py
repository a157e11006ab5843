"""How far beliefs move by changed values, in orders and in trees; psi and its lines; shuffled secrets and groups."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from noren.designs.decoys import DecoyDesign
from noren.designs.pram import PramDesign
from noren.designs.semantic.design import SemanticDesign
from noren.models import MODELS, Overall, SemanticDiversity, TauLDiversity, TCloseness, t_closeness
from noren.models.base import Judgement
from noren.models.classes import PeopleValues
from noren.models.histograms import Histograms
from noren.models.semantic_diversity import FrontierCheck
from noren.models.set_check import largest_beliefs
from noren.models.t_closeness import moved_beliefs
from noren.schema.hierarchy import Hierarchy
from noren.schema.roles import Role
from noren.statements import CodeCells, GroupTable, SetCells, Statement
from noren.statements.batch import PERSON
from noren.statements.set import ChangedStatement
from tests.statements import exact_column, group_column, meaning, member_column, set_column
from tests.unit.models.test_class_models import TREE, judged


def verdict_of(columns: dict[str, Statement], model: Any, cells: dict[str, Any], **more: Any) -> Any:
    judgement = Judgement.of(columns, [model], **more)
    judgement.observe(cells)
    (verdict,) = judgement.verdicts()
    return verdict


# ---------------------------------------------------------------- changed values

KEPT = PramDesign(d=3, keep=0.5)
"""A value stays with 2/3 and becomes each other one with 1/6: a ratio of 4 moves no belief by more than 1/3."""
SHARES = np.array([0.5, 0.3, 0.2])


def changed(t: float, overall: Overall | None, codes: list[int], distance: Any = "equal") -> Any:
    column = ChangedStatement(meaning("x", 3), KEPT)
    known = {} if overall is None else {"x": overall}
    model = TCloseness(on="x", t=t, distance=distance)
    return verdict_of({"x": column}, model, {"x": CodeCells(3, np.array(codes, int))}, overall=known)


def moves(distance: str = "equal") -> list[float]:
    """By Bayes' theorem, for every published value."""
    out = []
    for seen in range(3):
        belief = SHARES * np.where(np.arange(3) == seen, 2 / 3, 1 / 6)
        gap = belief / belief.sum() - SHARES
        out.append(float(np.abs(gap).sum() / 2 if distance == "equal" else np.abs(np.cumsum(gap)[:-1]).sum() / 2))
    return out


def test_what_the_ratio_proves_needs_no_distribution() -> None:
    for overall in (None, Overall(SHARES, "the original")):
        found = changed(1 / 3, overall, [0, 1, 2])
        assert (found.holds, found.breaches, found.basis) == (True, 0, "the published design")
        assert found.achieved == pytest.approx(1 / 3)
        assert found.statement == "no value moves any distribution by more than 0.3333 (rho = 4)"
    assert changed(0.33, None, []).holds is False, "nobody proves nothing"


@pytest.mark.parametrize("distance", ["equal", "ordered"])
def test_beyond_it_is_judged_for_the_distribution_of_the_table(distance: str) -> None:
    moved = moves(distance)
    worst, least = int(np.argmax(moved)), int(np.argmin(moved))
    between = (max(moved) + min(moved)) / 2
    known = Overall(SHARES, "the original")
    fails = changed(between, known, [worst, worst, least], distance)
    assert (fails.holds, fails.breaches, fails.records, fails.basis) == (False, 2, 3, "the original")
    assert fails.achieved == pytest.approx(max(moved))
    assert fails.statement.startswith("no published value moves the overall distribution by more than ")
    holds = changed(between, known, [least], distance)
    assert (holds.holds, holds.breaches, holds.records) == (True, 0, 1)
    assert holds.achieved == pytest.approx(min(moved)), "of values that are published"


@pytest.mark.parametrize("overall", [None, Overall(SHARES, "an estimate from the release", np.full(3, 0.1))])
def test_without_the_original_an_excess_is_undecided(overall: Overall | None) -> None:
    found = changed(0.05, overall, [0, 1])
    assert (found.holds, found.breaches) == (None, 2)
    assert "the published design does not prove 0.05, the original settles it" in found.statement
    if overall is not None:
        assert changed(max(moves()) + 0.001, overall, [0, 1]).holds is True


def test_a_value_that_is_never_changed_rules_others_out() -> None:
    sure = ChangedStatement(meaning("x", 2), PramDesign(d=2, keep=float(np.nextafter(1, 0))))
    found = verdict_of({"x": sure}, TCloseness(on="x", t=0.9), {"x": CodeCells(2, np.array([0]))})
    assert found.holds is None
    assert found.achieved == pytest.approx(1)


def test_beliefs_move_through_a_tree_and_an_order() -> None:
    belief, shares = np.array([[1.0, 0.0, 0.0, 0.0], [0.25, 0.25, 0.5, 0.0]]), np.array([0.25, 0.25, 0.25, 0.25])
    levels = [TREE.groups(height)[1] for height in range(2)]
    assert moved_beliefs(belief, shares, "tree", levels) == pytest.approx([(0.75 + 0.5) / 2, (0.25 + 0) / 2])
    assert moved_beliefs(belief, shares, "ordered") == pytest.approx([(0.75 + 0.5 + 0.25) / 3, 0.25 / 3])
    assert moved_beliefs(belief, shares, "equal") == pytest.approx([0.75, 0.25])
    assert moved_beliefs(np.ones((2, 1)), np.ones(1), "ordered").tolist() == [0, 0]


@pytest.mark.parametrize(("values", "classes", "moved"), [("ab", ("aab", "abb"), 1 / 6), ("a", ("aa", "a"), 0)])
def test_two_values_in_order_are_as_far_apart_as_any_and_one_is_nowhere_else(
    values: str, classes: tuple[str, ...], moved: float
) -> None:
    tree = Hierarchy((tuple(values), ("*",) * len(values)))
    found = judged(TCloseness(on="x", t=0.5, distance="ordered"), *classes, tree=tree)
    assert found.achieved == pytest.approx(moved)


def test_only_total_variation_holds_of_parts_of_tuples() -> None:
    made = {one: TCloseness(on="x", t=0.2, distance=one) for one in ("equal", "ordered", "tree")}  # type: ignore[arg-type]
    assert {name: one.holds_of_parts for name, one in made.items()} == {"equal": True, "ordered": False, "tree": False}


# ---------------------------------------------------------------- psi


@pytest.mark.parametrize(("tau", "size"), [(0.5, 2), (0.4, 3), (0.3, 5)])
def test_psi_rises_evenly_to_one(tau: float, size: int) -> None:
    model = TauLDiversity(on="x", tau=tau, l=size)
    for k in range(1, size + 3):
        assert model.psi(k) == pytest.approx(min(1, tau + (1 - tau) * (k - 1) / (size - 1)))


def test_the_two_most_frequent_values_have_a_ceiling_of_their_own() -> None:
    """Of "aabbc" two values are 4/5: psi(2) = tau + (1 - tau) / 2 from tau = 3/5 on."""
    assert judged(TauLDiversity(on="x", tau=0.6, l=3), "aabbc").holds is True
    assert judged(TauLDiversity(on="x", tau=0.599, l=3), "aabbc").holds is False
    assert judged(TauLDiversity(on="x", tau=0.599, l=3), "aabbc").achieved == pytest.approx(0.6)
    asked = [(one.tau, one.l) for one in TauLDiversity.probes(exact_column("x", 4))]  # type: ignore[attr-defined]
    assert asked == [(0.9, 2), (0.9, 3), (0.9, 4)]
    with pytest.raises(ValueError, match="ceilings must rise"):
        TauLDiversity(on="x", tau=0.5, l=3, ceilings=(0.5, 0.5))


@pytest.mark.parametrize("ceilings", [(0.5, 0.8), (0.4, 0.5), (0.34, 0.67), (0.3, 0.31, 0.8)])
def test_searches_look_for_the_steepest_line_below_all_ceilings(ceilings: tuple[float, ...]) -> None:
    size = len(ceilings) + 1
    rule = TauLDiversity(on="x", tau=ceilings[0], l=size, ceilings=ceilings).search_rule

    def start(to: int) -> float:
        """The highest line from k = 1 that ends in (to, 1) and passes below every ceiling."""
        return min((psi - (k - 1) / (to - 1)) / (1 - (k - 1) / (to - 1)) for k, psi in enumerate(ceilings, 1))

    fewest = next(to for to in range(size, 99) if start(to) >= 1 / to)
    assert (rule.first, rule.second) == (pytest.approx(start(fewest)), fewest)


# ---------------------------------------------------------------- sets


def test_one_set_achieves_its_distance() -> None:
    far = np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0)))
    check = FrontierCheck(SemanticDiversity(on="x", l=2, d=1.0), set_column("x", 6, distances=far))
    check.observe({"x": SetCells.from_codes(6, np.array([[1, 4]]))})
    found = check.verdict()
    assert (found.holds, found.records, found.breaches, found.achieved) == (True, 1, 0, 3.0)


def test_a_design_that_may_draw_a_worse_set_does_not_hold() -> None:
    """Although the set that was seen would do; and of a set that it never draws nothing can be said."""
    far = np.abs(np.subtract.outer(np.arange(9.0), np.arange(9.0)))
    design = SemanticDesign.make("simple", far, 3, 2)
    column = set_column("x", 9, design, distances=far)
    sets = np.array([[0, 2, 4], [0, 4, 8], [1, 3, 5], [0, 1, 2]])
    beliefs = largest_beliefs(column, SetCells.from_codes(9, sets), 3)
    assert beliefs[3] == 0
    assert (beliefs[:3] >= 1 / 3).all()
    mild = int(np.argmin(beliefs[:3]))
    assert beliefs[mild] < design.worst_belief()
    model = SemanticDiversity(on="x", l=3, d=2.0, most=float(beliefs[mild]) + 1e-6)
    found = verdict_of({"x": column}, model, {"x": SetCells.from_codes(9, sets[mild : mild + 1])})
    assert (found.holds, found.breaches) == (False, 1)


def test_shuffled_members_by_a_design_that_believes_too_much_do_not_hold() -> None:
    far = np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0)))
    column = member_column("x", 6, DecoyDesign(d=6, eta=2, p=1.0), distances=far)
    cells = {"x": CodeCells(6, np.array([0, 3]))}
    assert verdict_of({"x": column}, SemanticDiversity(on="x", l=2, d=2.0), cells).holds is True
    assert verdict_of({"x": column}, SemanticDiversity(on="x", l=2, d=2.0, most=0.4), cells).holds is False


def test_a_person_with_two_shuffled_secrets_is_counted_once() -> None:
    """Every member of one set stands beside every member of the other: four rows a person, in one town."""
    far = np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0)))
    columns: dict[str, Statement] = {
        "town": exact_column("town", 2, role=Role.QUASI_IDENTIFIER),
        "x": member_column("x", 6, distances=far),
        "y": member_column("y", 6, distances=far),
    }
    model = SemanticDiversity(on="x", l=2, d=2.0, most=1.0)
    for near, holds, breaches in ((3, True, 0), (1, False, 1)):
        rows = [(0, x, y) for x in (0, 3) for y in (1, 4)] + [(1, x, y) for x in (0, near) for y in (2, 5)]
        cells = {
            name: CodeCells(6, np.array(codes)) for name, codes in zip("txy", zip(*rows, strict=True), strict=True)
        }
        cells = {"town": CodeCells(2, cells["t"].data), "x": cells["x"], "y": cells["y"]}
        found = verdict_of(columns, model, cells)
        assert (found.holds, found.records, found.breaches) == (holds, 2, breaches)
    odd = verdict_of(columns, model, {name: one.take(slice(0, 3)) for name, one in cells.items()})
    assert (odd.holds, odd.achieved) == (False, 0), "half a person"


# ---------------------------------------------------------------- groups


def grouped(model: Any, table: GroupTable, groups: list[int], people: list[int], values: list[int]) -> Any:
    column = group_column("x", 4, groups=table, role=Role.SENSITIVE)
    held = PeopleValues.of(np.array(people), np.array(values))
    known = {"x": Overall(np.full(4, 0.25), "the original", people=held)}
    cells = {"x": CodeCells(table.groups, np.array(groups)), PERSON: CodeCells(9, np.array(people))}
    return verdict_of({"x": column}, model, cells, overall=known, people=True)


def test_people_in_groups_are_judged_by_what_each_of_them_has() -> None:
    """Of two people in the first group both have a, in one of two rows the first; in the second one has c, one d."""
    groups, people, values = [0, 0, 0, 1, 1], [0, 0, 5, 2, 3], [0, 1, 0, 2, 3]
    table = GroupTable.from_codes(2, 4, np.array(groups), np.array(values))
    alpha = MODELS["alpha-k-anonymity"](on="x", alpha=0.9, k=2)
    found = grouped(alpha, table, groups, people, values)
    assert (found.achieved, found.records, found.holds, found.breaches) == (1, 4, False, 2)
    distinct = grouped(MODELS["distinct-l-diversity"](on="x", l=2), table, groups, people, values)
    assert (distinct.achieved, distinct.records, distinct.holds) == (2, 4, True)
    other = grouped(alpha, table, [0, 0, 0, 1, 0], people, values)
    assert (other.holds, other.breaches) == (False, 4)
    assert "do not have as many records as their table says" in other.statement


def test_counterfeits_are_in_groups_that_somebody_names() -> None:
    table = GroupTable.from_codes(2, 3, np.array([0, 0, 1, 1]), np.array([0, 1, 1, 2]))
    plain = group_column("x", 3, groups=table, role=Role.SENSITIVE)
    column = replace(plain, counterfeits={0: 1, 1: 2})
    model = MODELS["distinct-l-diversity"](on="x", l=2)
    found = verdict_of({"x": column}, model, {"x": CodeCells(2, np.array([0]))})
    assert (found.records, found.breaches, found.holds) == (2, 2, False), "nobody names the second group"


# ------------------------------------------------------------------ t-closeness


@pytest.mark.parametrize("cells", [1, 4, 1 << 21])
def test_ordered_distances_of_every_class_and_of_one_value(monkeypatch: pytest.MonkeyPatch, cells: int) -> None:
    """The first class has the first of three values alone, the second half of the last two: whole (1/3, 1/3, 1/3)."""
    monkeypatch.setattr(t_closeness, "CELLS", cells)
    part = Histograms(np.array([2, 2]), np.array([0, 1, 3]), np.array([0, 1, 2]), np.array([2.0, 1.0, 1.0]))
    moved = t_closeness.ordered_distances(part, np.full(3, 1 / 3))
    assert moved == pytest.approx([(2 / 3 + 1 / 3) / 2, (1 / 3 + 1 / 6) / 2])
    alone = Histograms(np.array([2]), np.array([0, 1]), np.array([0]), np.array([2.0]))
    assert t_closeness.ordered_distances(alone, np.ones(1)).tolist() == [0]


def seen(shares: list[float], sets: list[list[int]], error: float | None, t: float) -> Any:
    """Two of four values in every set, the truth always inside."""
    errors = None if error is None else np.full(4, error)
    known = {"x": Overall(np.array(shares), "an estimate from the release", errors)}
    column = set_column("x", 4, DecoyDesign(d=4, eta=2, p=1.0))
    judgement = Judgement.of({"x": column}, [TCloseness(on="x", t=t)], known)
    judgement.observe({"x": SetCells.from_codes(4, np.array(sets))})
    (found,) = judgement.verdicts()
    return found


def test_a_set_that_nobody_can_have_moves_nothing() -> None:
    """Both of its values have no share, so that Bayes' rule says nothing about it."""
    found = seen([0.5, 0.5, 0.0, 0.0], [[2, 3]], None, 0.1)
    assert (found.achieved, found.holds) == (0, True)
    assert seen([0.5, 0.5, 0.0, 0.0], [[1, 2]], None, 0.1).achieved == pytest.approx(0.5)


@pytest.mark.parametrize(("error", "holds"), [(0.0, False), (0.028, False), (0.042, None)])
def test_an_excess_is_sure_if_no_distribution_within_twice_the_error_explains_it(error: float, holds: Any) -> None:
    """A set moves belief by the share of the values outside it, 1/2, and may by 0.3: the values inside would have to
    have 0.7. Of 400 neighbours at twice the error e the furthest adds about 6 e to them: 0.17, and 0.25."""
    assert seen([0.25] * 4, [[0, 1]], error, 0.3).holds is holds
