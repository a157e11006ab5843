"""People with several rows, classes judged in lots, and sums of epsilons, counted by hand."""

from __future__ import annotations

from dataclasses import replace
from math import exp, inf, log
from typing import Any

import numpy as np
import pytest

from noren.designs.decoys import DecoyDesign
from noren.models import MODELS, Evidence, KAnonymity, Model, Overall, TCloseness, Verdict
from noren.models.base import Judgement
from noren.models.verdict import Verdicts, verdict_line
from noren.schema.nodes import Nodes
from noren.schema.roles import Role
from noren.statements import CodeCells, GroupTable, SetCells, Statement
from noren.statements.batch import PERSON
from tests.statements import exact_column, group_column, node_column, set_column

WHERE = exact_column("where", 3, role=Role.QUASI_IDENTIFIER)
ROWS = [(0, 0, "a"), (0, 0, "a"), (0, 0, "b"), (0, 1, "b"), (1, 0, "c"), (1, 2, "c"), (1, 2, "d"),
        (2, 3, "a"), (2, 3, "b"), (2, 3, "c"), (2, 8, "a")]  # fmt: skip
"""Class, person, secret."""


def seen(model: Model, column: Statement, rows: Any, people: bool = True) -> Any:
    where, whose, codes = (np.array(one) for one in zip(*rows, strict=True))
    judgement = Judgement.of({"where": WHERE, "x": column}, [model], people=people)
    cells = {"where": CodeCells(3, where), "x": CodeCells(column.kinds or column.d, codes)}
    for half in (slice(0, None, 2), slice(1, None, 2)):
        judgement.observe({name: one.take(half) for name, one in cells.items()} | {PERSON: CodeCells(9, whose[half])})
    (verdict,) = judgement.verdicts()
    return verdict


def shares() -> tuple[list[dict[str, float]], list[dict[str, float]], dict[str, float]]:
    """h_E(v), q_E(v) of every class, and q of the whole table, by their definitions."""
    holders, parts = [], []
    for number in range(3):
        rows = [(whose, value) for where, whose, value in ROWS if where == number]
        people = sorted({whose for whose, _ in rows})
        values = sorted({value for _, value in rows})
        own = {one: [value for whose, value in rows if whose == one] for one in people}
        holders.append({v: sum(v in own[one] for one in people) / len(people) for v in values})
        parts.append({v: sum(own[one].count(v) / len(own[one]) for one in people) / len(people) for v in values})
    own = {one: [value for _, whose, value in ROWS if whose == one] for one in (0, 1, 2, 3, 8)}
    return holders, parts, {v: sum(own[one].count(v) / len(own[one]) for one in own) / 5 for v in "abcd"}


def entropy(part: dict[str, float]) -> float:
    return exp(-sum(share * log(share) for share in part.values()))


def counted(rows: list[str]) -> dict[str, float]:
    """The shares of the rows, whoever's they are."""
    return {value: rows.count(value) / len(rows) for value in sorted(set(rows))}


H, Q, WHOLE = shares()
ALL_ROWS = counted([value for *_, value in ROWS])
BY_ROWS = [counted([value for where, _, value in ROWS if where == number]) for number in range(3)]
"""What a class holds of people must hold of its rows as well, which every recipient can count."""
BY_HAND = [
    (KAnonymity(k=2), 2),
    (MODELS["alpha-k-anonymity"](on="x", alpha=0.5, k=2), max(max(one.values()) for one in H)),
    (MODELS["frequency-l-diversity"](on="x", l=2), 1),
    (MODELS["distinct-l-diversity"](on="x", l=2), 2),
    (MODELS["entropy-l-diversity"](on="x", l=2), min(map(entropy, Q + BY_ROWS))),
    (TCloseness(on="x", t=0.2), max(sum(abs(one.get(v, 0) - WHOLE[v]) for v in "abcd") / 2 for one in Q)),
    (
        MODELS["beta-likeness"](on="x", beta=9, form="basic"),
        max(
            one[v] / whole[v] - 1
            for classes, whole in ((Q, WHOLE), (BY_ROWS, ALL_ROWS))
            for one in classes
            for v in one
        ),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("model", "figure"), BY_HAND, ids=lambda one: getattr(one, "model", ""))
def test_people_are_counted_and_not_their_rows(model: Model, figure: float) -> None:
    column = exact_column("x", 4, role=Role.SENSITIVE)
    rows = [(where, whose, "abcd".index(value)) for where, whose, value in ROWS]
    verdict = seen(model, column, rows)
    assert verdict.achieved == pytest.approx(figure)
    assert verdict.records == 6, "people of every class; one is in two of them"


def test_rows_that_everybody_can_count_must_satisfy_a_requirement_too() -> None:
    """Three people with one value each: a third of the people, but two thirds of the rows have the last."""
    column = exact_column("x", 4, role=Role.SENSITIVE)
    rows = [(0, 0, 0), (0, 1, 1), *[(0, 2, 2)] * 4]
    for model in (MODELS["frequency-l-diversity"](on="x", l=3), MODELS["alpha-k-anonymity"](on="x", alpha=0.4, k=2)):
        verdict = seen(model, column, rows)
        assert (verdict.holds, verdict.breaches) == (False, 3)
    assert seen(MODELS["frequency-l-diversity"](on="x", l=3), column, rows[:3]).holds is True
    apart = [(0, 0, 0), (0, 1, 1), *[(1, 2, 0)] * 5, (1, 3, 1)]
    assert seen(TCloseness(on="x", t=0.2), column, apart).holds is False, "5 of 6 rows of the second, 6 of 8 of all"


def test_what_only_one_person_has_is_one_value_to_somebody_who_knows_the_others() -> None:
    """min(values, 1 + the fewest values among the others' rows over all people)."""
    column = exact_column("x", 4, role=Role.SENSITIVE)
    for rows, figure in (
        ([(0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 1, 3)], 2),  # beside the first: d alone
        ([(0, 0, 0), (0, 0, 1), (0, 1, 2), (0, 1, 3)], 3),
        ([(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1)], 2),
        ([(0, 5, 0), (0, 5, 0)], 1),
    ):
        assert seen(MODELS["distinct-l-diversity"](on="x", l=2), column, rows).achieved == figure


@pytest.mark.parametrize("weights", [None, {"0": 3.0}])
def test_a_general_value_is_divided_among_the_values_under_it(weights: Any) -> None:
    """One person says 0, another "0 or 1" and 2: of three values the first has 1 and half or three quarters."""
    nodes = Nodes.from_members(3, ["0", "1", "2", "low"], [(0,), (1,), (2,), (0, 1)])
    column = node_column("x", 3, nodes=nodes, role=Role.SENSITIVE)
    model = MODELS["tau-l-diversity"](on="x", tau=0.5, l=2, weights=weights)
    verdict = seen(model, column, [(0, 0, 0), (0, 1, 3), (0, 1, 2)])
    assert verdict.achieved == (0.75 if weights is None else 0.875), "of two people one, and part of the other"
    closeness = seen(TCloseness(on="x", t=0.9), column, [(0, 0, 0), (0, 1, 3), (0, 1, 2), (1, 2, 2)])
    whole = np.array([1 + 0.25, 0.25, 0.5 + 1]) / 3
    one = np.array([1 + 0.25, 0.25, 0.5]) / 2
    moved = [np.abs(one - whole).sum() / 2, np.abs(np.array([0, 0, 1]) - whole).sum() / 2]
    assert closeness.achieved == pytest.approx(max(moved))


def test_a_group_that_nobody_names_has_nobody_whatever_its_table_says() -> None:
    """Not even its counterfeits: entries of the table that are nobody's."""
    table = GroupTable.from_codes(2, 3, np.array([0, 0, 1]), np.array([0, 1, 2]))
    column = group_column("x", 3, groups=table, role=Role.SENSITIVE)
    judgement = Judgement.of({"x": column}, [MODELS["distinct-l-diversity"](on="x", l=2)])
    judgement.observe({"x": CodeCells(2, np.array([0, 0]))})
    (verdict,) = judgement.verdicts()
    assert (verdict.records, verdict.holds) == (2, False)
    assert (verdict.breaches, verdict.short) == (1, 1), "one record that the table has and no cell names"


def test_rows_of_unknown_people_can_show_too_few_and_not_enough() -> None:
    columns: dict[str, Statement] = {"where": WHERE}
    for rows, holds in (([0, 1, 1], False), ([0, 0], None)):
        judgement = Judgement.of(columns, [KAnonymity(k=2)], several=True)
        judgement.observe({"where": CodeCells(3, np.array(rows))})
        (verdict,) = judgement.verdicts()
        assert verdict.holds is holds
        assert ("rows were counted" in verdict.statement) is (holds is None)


def test_one_record_alone_looks_like_no_other() -> None:
    (check,) = Judgement.of({"where": WHERE}, [KAnonymity(k=2)]).checks
    check.observe({"where": CodeCells(3, np.array([1]))})
    found = check.verdict()
    assert (found.achieved, found.records, found.statement) == (1, 1, "some record is unique in its quasi-identifiers")


# ---------------------------------------------------------------- epsilons


def budget(
    *coins: float, epsilon: float = 1.0, sets: Any = ((0, 1),), whose: list[int] | None = None, **more: Any
) -> Any:
    columns: dict[str, Statement] = {
        f"c{i}": set_column(f"c{i}", 4, DecoyDesign(d=4, eta=2, p=p)) for i, p in enumerate(coins)
    }
    model = MODELS["local-privacy"](on=tuple(columns), epsilon=epsilon)
    judgement = Judgement.of(columns, [model], people=whose is not None, **more)
    cells: dict[str, Any] = {name: SetCells.from_codes(4, np.array(sets).reshape(-1, 2)) for name in columns}
    if whose is not None:
        cells[PERSON] = CodeCells(9, np.array(whose))
    judgement.observe(cells)
    (verdict,) = judgement.verdicts()
    return verdict


def test_epsilons_of_columns_add_up_to_the_budget() -> None:
    """p = 1/2, two of four: rho = 1 + p d / (eta (1 - p)) = 3."""
    for coins, epsilon in (([0.5], log(3)), ([0.5, 0.5], 2 * log(3))):
        exactly = budget(*coins, epsilon=epsilon)
        assert (exactly.holds, exactly.achieved, exactly.breaches) == (True, pytest.approx(epsilon), 0)
        beyond = budget(*coins, epsilon=epsilon - 0.01, sets=((0, 1), (2, 3)))
        assert (beyond.holds, beyond.breaches, beyond.records) == (False, 2, 2)
    assert budget(0.5, epsilon=2).statement == "epsilon 1.099 in all"
    assert budget(0.5, 0.5, epsilon=3).statement == "epsilon 2.197 in all (c0 has epsilon 1.099; c1 has epsilon 1.099)"


def test_nobody_has_no_epsilon_that_holds_and_what_rules_values_out_has_none() -> None:
    nothing = budget(0.5, sets=())
    assert (nothing.holds, nothing.records) == (False, 0)
    bare = budget(1.0, 0.5, epsilon=50)
    assert (bare.holds, bare.achieved) == (False, inf)
    assert bare.statement == "c0 has no finite epsilon, because its published cells rule values out"


def test_a_person_has_one_draw_of_a_column() -> None:
    once = budget(0.5, epsilon=2, sets=((0, 1), (0, 1), (2, 3)), whose=[4, 4, 5])
    assert (once.holds, once.breaches) == (True, 0)
    twice = budget(0.5, epsilon=2, sets=((0, 1), (0, 2), (2, 3), (1, 2), (1, 3)), whose=[4, 4, 5, 6, 6])
    assert (twice.holds, twice.breaches) == (False, 2)
    assert "people have more than one draw in c0 (2 people)" in twice.statement


@pytest.mark.parametrize(("epsilon", "holds"), [(2.0, None), (0.5, False)])
def test_rows_of_unknown_people_may_be_several_draws_of_one(epsilon: float, holds: Any) -> None:
    assert budget(0.5, epsilon=epsilon, several=True).holds is holds


def test_a_budget_of_several_columns_is_another_than_that_of_one() -> None:
    kind = MODELS["local-privacy"]
    assert kind(on="a", epsilon=1).identity == kind(on="b", epsilon=2).identity == "local-privacy"
    assert kind(on=("b", "a"), epsilon=1).identity == "local-privacy/a, b"


# ---------------------------------------------------------------- verdicts


def test_verdicts_hold_if_all_do_and_say_which_do_not() -> None:
    def told(*holds: bool | None) -> Verdicts:
        return Verdicts([Verdict("k-anonymity", "x", 2, 1, one, "the release alone", 1, 0, "") for one in holds])

    assert (told().hold, told()._headline()) == (True, "nothing is required")
    for holds, words in (
        ((True,), "1 of 1 holds"),
        ((True, True), "2 of 2 hold"),
        ((True, False), "1 of 2 holds, 1 FAILS"),
        ((None, False, False), "0 of 3 hold, 2 FAIL, 1 undecided"),
    ):
        found = told(*holds)
        assert (found.hold, found._headline()) == (all(one is True for one in holds), words)
        assert (len(found.failed), len(found.undecided)) == (holds.count(False), holds.count(None))
    assert repr(told(True)[0]) == "<Verdict: k-anonymity on x: asked 2, found 1, holds>"
    assert "found" not in verdict_line(replace(told(True)[0], achieved=None))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("codes", "holds", "achieved"), [([0, 3], True, 2), ([0], False, 1), ([0, 1], False, 1), ([], False, 0)]
)
def test_people_who_are_left_out_have_values_far_apart(codes: list[int], holds: bool, achieved: int) -> None:
    far = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    model = MODELS["semantic-diversity"](on="x", l=2, d=2.0)
    judgement = Judgement(model.left_out_checks(Evidence({"x": exact_column("x", 4, distances=far)}, {})))
    judgement.observe({"x": CodeCells(4, np.array(codes, int))})
    (found,) = judgement.verdicts()
    assert (found.holds, found.achieved, found.records) == (holds, achieved, len(codes))
    assert found.breaches == (0 if holds else len(codes))


def test_an_excess_that_one_part_proves_is_proven() -> None:
    """Two columns of shares: an error of nothing leaves no doubt, one of everything leaves all of it."""
    design = DecoyDesign(d=4, eta=2, p=1.0)
    sets = {"x": SetCells.from_codes(4, np.array([[0, 1], [2, 3]]))}
    for error, holds in ((0.0, False), (0.9, None)):
        known = {"x": Overall(np.array([0.4, 0.3, 0.2, 0.1]), "an estimate from the release", np.full(4, error))}
        made = [Judgement.of({"x": set_column("x", 4, design)}, [TCloseness(on="x", t=0.2)], known) for _ in range(3)]
        made[0].observe(sets)
        made[1].merge(made[0])
        assert made[1].verdicts()[0].holds is holds
        made[0].merge(made[2])
        assert made[0].verdicts()[0].holds is holds
