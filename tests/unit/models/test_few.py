"""Verdicts on nobody, on one record and on few, and what models work out beside them, against plain counting."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import noren as nr
from noren.designs.decoys import DecoyDesign
from noren.errors import ModelDoesNotApply
from noren.models import MODELS, Overall, SemanticDiversity, TauLDiversity, TCloseness
from noren.models.base import Judgement
from noren.models.classes import PeopleGroups, PeopleValues, _people_groups, key_columns, key_layout
from noren.models.histograms import sum_entries
from noren.models.semantic_diversity import FrontierCheck, frontier
from noren.models.t_closeness import largest_move, tree_over
from noren.schema.hierarchy import Hierarchy
from noren.schema.roles import Role
from noren.statements import CodeCells, GroupTable, SetCells, Statement, take
from noren.statements.batch import PERSON
from tests.statements import exact_column, group_column, member_column, open_column, set_column
from tests.unit.models.test_judgement import FAR, JUDGES, MEANING, WORLDS, D, model_of

OF_DESIGNS = {"local-privacy"}
"""Judged by what is said of the drawing, whoever was drawn."""


@pytest.mark.parametrize(("name", "form"), JUDGES)
@pytest.mark.parametrize("batches", [0, 1])
def test_nobody_proves_nothing(name: str, form: str, batches: int) -> None:
    world = WORLDS[form](3, np.random.default_rng(0))
    whole = Judgement.of(world.columns, [model_of(name)], world.overall)
    for _ in range(batches):
        whole.observe(take(world.cells, slice(0, 0)))
    for verdict in whole.verdicts():
        assert verdict.records == 0
        if form != "groups":  # a table of groups speaks of people who are not there: these groups fall short
            assert (verdict.breaches, verdict.short) == (0, 0)
        if name not in OF_DESIGNS:
            assert verdict.holds is not True


@pytest.mark.parametrize(("name", "form"), JUDGES)
@pytest.mark.parametrize("n", [1, 2, 7])
def test_few_are_counted_and_who_breaks_a_requirement_is_somebody(name: str, form: str, n: int) -> None:
    world = WORLDS[form](n, np.random.default_rng(n))
    whole = Judgement.of(world.columns, [model_of(name)], world.overall)
    whole.observe(world.cells)
    for verdict in whole.verdicts():
        if form != "members":
            assert verdict.records == n
        assert 0 <= verdict.breaches <= verdict.records
        assert verdict.holds is None or verdict.holds == (verdict.breaches == 0)


def one_set(*members: int, times: int = 1) -> tuple[dict[str, Statement], dict[str, Any]]:
    statement = set_column("x", D, DecoyDesign(d=D, eta=len(members), p=0.5), **MEANING)
    return {"x": statement}, {"x": SetCells.from_codes(D, np.array([members] * times))}


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize(
    ("model", "holds"),
    [
        (MODELS["frequency-l-diversity"](on="x", l=3), True),
        (MODELS["frequency-l-diversity"](on="x", l=4), False),
        (SemanticDiversity(on="x", l=3, d=2.0, most=0.99), True),
        (TCloseness(on="x", t=0.9), True),
    ],
)
def test_one_set_may_prove_a_requirement(model: Any, holds: bool, times: int) -> None:
    columns, cells = one_set(0, 2, 4, times=times)
    whole = Judgement.of(columns, [model], {"x": Overall(np.full(D, 1 / D), "the original")})
    whole.observe(cells)
    (verdict,) = whole.verdicts()
    assert (verdict.holds, verdict.records, verdict.breaches) == (holds, times, 0 if holds else times)


@pytest.mark.parametrize(("rows", "people", "holds"), [([0, 3], 1, True), ([0, 3, 1, 4], 2, True), ([0, 1], 1, False)])
def test_members_of_few_people(rows: list[int], people: int, holds: bool) -> None:
    statement = member_column("x", D, **MEANING)
    model = SemanticDiversity(on="x", l=2, d=2.0, most=1.0)
    whole = Judgement.of({"x": statement}, [model])
    whole.observe({"x": CodeCells(D, np.array(rows))})
    (verdict,) = whole.verdicts()
    assert (verdict.holds, verdict.records, verdict.breaches) == (holds, people, 0 if holds else people)
    assert verdict.achieved == (2 if holds else 1)
    (nothing,) = Judgement.of({"x": statement}, [model]).verdicts()
    assert (nothing.holds, nothing.achieved, nothing.records) == (False, 0, 0)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", [2, 3])
def test_the_frontier_is_the_largest_distance_that_every_set_keeps(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    distances = rng.integers(0, 12, (D, D)).astype(float)
    distances = np.triu(distances, 1) + np.triu(distances, 1).T
    sets = np.array([np.sort(rng.choice(D, 4, replace=False)) for _ in range(3)])

    def keeps(row: np.ndarray) -> float:
        return max(min(distances[a, b] for a, b in combinations(own, 2)) for own in combinations(row.tolist(), size))

    assert frontier(sets, distances, size) == min(keeps(row) for row in sets)
    assert frontier(sets[:, :1], distances, size) == 0
    lines = np.abs(np.subtract.outer(np.arange(D), np.arange(D))).astype(float)
    assert frontier(np.array([[0, 3, 5]]), lines, 2) == 5
    assert frontier(np.array([[0, 3, 5]]), lines, 3) == 2


def test_what_a_column_achieves_counts_its_records() -> None:
    columns, cells = one_set(0, 2, 4, times=3)
    check = FrontierCheck(SemanticDiversity(on="x", l=2, d=1.0), columns["x"])
    check.observe(cells)
    check.observe(cells)
    other = FrontierCheck(check.model, columns["x"])
    other.observe(cells)
    check.merge(other)
    found = check.verdict()
    assert (found.records, found.achieved, found.holds) == (9, 4.0, True)
    empty = FrontierCheck(check.model, columns["x"]).verdict()
    assert (empty.records, empty.achieved, empty.holds) == (0, 0.0, False)


# ---------------------------------------------------------------- classes


@pytest.mark.parametrize(
    ("sizes", "parts"),
    [
        ([2, 3], [["k0", "k1"]]),
        ([1 << 31, 1 << 30], [["k0", "k1"]]),
        ([1 << 31, (1 << 31) - 1], [["k0", "k1"]]),
        ([1 << 31, 1 << 31], [["k0"], ["k1"]]),
        ([1 << 31, 1 << 31, 2], [["k0"], ["k1", "k2"]]),
        ([2, None, 3], [["k1"], ["k0", "k2"]]),
        ([0, 3], [["k0", "k1"]]),
        ([], []),
    ],
)
def test_keys_stand_in_one_number_as_long_as_it_holds_them(sizes: list[int | None], parts: list[list[str]]) -> None:
    keys: Any = [SimpleNamespace(name=f"k{i}", kinds=size) for i, size in enumerate(sizes)]
    assert [[key.name for key in part] for part in key_layout(keys)] == parts


def test_numbers_of_keys_are_equal_where_all_keys_are() -> None:
    keys = [exact_column("a", 3), exact_column("b", 4), open_column("t")]
    rng = np.random.default_rng(2)
    codes = {"a": rng.integers(0, 3, 30), "b": rng.integers(0, 4, 30)}
    batch = {name: CodeCells(d, codes[name]) for name, d in (("a", 3), ("b", 4))}
    (found,) = key_columns(keys[:2], batch)
    pairs = list(zip(codes["a"], codes["b"], strict=True))
    assert [[a == b for b in pairs] for a in pairs] == (found[:, None] == found).tolist()


def test_histograms_from_entries_in_any_order() -> None:
    owner, value = np.array([1, 0, 1, 0, 1]), np.array([2, 0, 0, 0, 2])
    mass = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    for order in (np.arange(5), np.array([4, 2, 0, 1, 3]), np.lexsort((value, owner))):
        found = sum_entries(np.array([6.0, 9.0]), owner[order], value[order], mass[order], 3)
        assert (found.starts.tolist(), found.value.tolist(), found.mass.tolist()) == ([0, 1, 3], [0, 0, 2], [6, 3, 6])
    none = np.zeros(0, np.int64)
    assert sum_entries(np.zeros(2), none, none, np.zeros(0), 3).starts.tolist() == [0, 0, 0]


GROUPS = GroupTable(2, D, np.array([0, 0, 1, 1]), np.array([0, 1, 2, 3]), np.array([2, 1, 1, 1]))


def people_groups(groups: list[int], people: list[int], values: list[int]) -> PeopleGroups:
    """Rows of people, each in a group; values that the people really have."""
    column = group_column("x", D, groups=GROUPS, **MEANING)
    found = PeopleGroups(column, PeopleValues.of(np.array(people), np.array(values)))
    for part in (slice(0, 2), slice(2, None)):
        batch = {"x": CodeCells(2, np.array(groups)[part]), PERSON: CodeCells(9, np.array(people)[part])}
        found.observe(batch)
    return found


def test_people_of_groups_are_counted() -> None:
    """Three people in two groups: 0 has two rows in the first, 5 one there; 2 has two rows in the second."""
    classes = people_groups([0, 0, 0, 1, 1], [0, 0, 5, 2, 2], [0, 1, 0, 2, 3])
    table = classes.table()
    assert (table.n.tolist(), table.found.tolist()) == ([2, 1], [2, 1])
    assert classes.names(np.array([1, 0])) == [{"x": "group 1"}, {"x": "group 0"}]


@pytest.mark.parametrize(
    ("groups", "people", "values"),
    [
        ([0, 1, 0, 1, 1], [0, 0, 5, 2, 2], [0, 1, 0, 2, 3]),
        ([0, 0, 0, 1, 1], [0, 0, 5, 2, 2], [0, 1, 1, 2, 3]),
    ],
)
def test_people_in_two_groups_or_with_other_values_than_the_table_prove_nothing(groups, people, values) -> None:
    table = people_groups(groups, people, values).table()
    assert len(table) == 0


@pytest.mark.parametrize("known", [None, Overall(np.full(D, 1 / D), "the original")])
def test_groups_of_people_need_the_original(known: Overall | None) -> None:
    column = group_column("x", D, groups=GROUPS, **MEANING)
    evidence: Any = SimpleNamespace(overall={} if known is None else {"x": known})
    with pytest.raises(ModelDoesNotApply, match="'x' is published as groups of values, which do not show which person"):
        _people_groups(evidence, column)
    held = PeopleValues.of(np.array([0]), np.array([1]))
    told: Any = SimpleNamespace(overall={"x": Overall(np.full(D, 1 / D), "the original", people=held)})
    assert _people_groups(told, column).held is held  # type: ignore[attr-defined]


# ---------------------------------------------------------------- figures of models


@pytest.mark.parametrize(
    ("tau", "size", "ceilings"), [(0.5, 3, (0.5, 0.8)), (0.4, 4, (0.4, 0.5, 0.9)), (0.3, 5, (0.3, 0.31, 0.8, 0.99))]
)
def test_searches_know_a_rule_that_implies_the_ceilings(tau: float, size: int, ceilings: tuple[float, ...]) -> None:
    model = TauLDiversity(on="x", tau=tau, l=size, ceilings=ceilings)
    rule = model.search_rule
    start, many = rule[1], int(rule[2])
    assert many >= size
    assert start >= 1 / many
    line = [start + (1 - start) * (k - 1) / (many - 1) for k in range(1, size)]
    assert all(own <= ceiling + 1e-12 for own, ceiling in zip(line, ceilings, strict=True))
    assert any(own == pytest.approx(ceiling) for own, ceiling in zip(line, ceilings, strict=True)), (
        "no lower than needed"
    )
    assert TauLDiversity(on="x", tau=tau, l=size).search_rule[1:3] == (tau, size)


@pytest.mark.parametrize(("rho", "move"), [(1.0, 0.0), (4.0, 1 / 3), (9.0, 0.5), (np.inf, 1.0)])
def test_the_furthest_that_a_ratio_moves_a_belief(rho: float, move: float) -> None:
    assert largest_move(rho) == pytest.approx(move)


def test_distances_in_a_tree_need_one_over_the_values() -> None:
    tree = Hierarchy((tuple("abc"), ("*",) * 3))
    assert tree_over(exact_column("x", 3, hierarchy=tree, role=Role.SENSITIVE)) is tree
    less: Any = SimpleNamespace(name="x", d=4, column=SimpleNamespace(tree=tree))
    for wrong in (exact_column("x", 3, role=Role.SENSITIVE), less):
        with pytest.raises(ModelDoesNotApply, match="by tree distance needs a hierarchy of its values"):
            tree_over(wrong)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_what_is_measured_is_asked_of_columns(name: str) -> None:
    """A model about columns has nothing to measure without one, and probes name the column that they are about."""
    column = exact_column("x", D, **MEANING)
    for probe in MODELS[name].probes(column):
        assert probe.model == name
        assert set(probe.on) <= {"x"}
    for probe in MODELS[name].probes(None):
        assert probe.on == ()
    if MODELS[name].about == "columns":
        assert list(MODELS[name].probes(None)) == []
    assert FAR.shape == (D, D)


def test_what_a_verdict_says_of_few_is_a_sentence() -> None:
    import polars as pl

    def said(table: pl.DataFrame, model: str) -> list[str]:
        return [one.statement for one in nr.measure(table, quasi=["town"], sensitive=["job"]) if one.model == model]

    alone = pl.DataFrame({"town": ["Ulm", "Bonn", "Bonn"], "job": ["cook", "clerk", "miner"]})
    assert said(alone, "k-anonymity") == ["some record is unique in its quasi-identifiers"]
    assert "some class has fewer than 2 values" in said(alone, "recursive-cl-diversity")
    assert not any("inf" in one for one in said(alone, "recursive-cl-diversity"))
    assert said(alone[1:], "k-anonymity") == ["every record shares its quasi-identifiers with at least 1 other"]
    assert said(pl.concat([alone[1:]] * 2), "k-anonymity") == [
        "every record shares its quasi-identifiers with at least 3 others"
    ]
