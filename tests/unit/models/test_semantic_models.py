"""Sets whose members lie far apart: what passes, what fails, by how much, in both forms of a release."""

# ruff: noqa: E741  l is the paper's letter

from __future__ import annotations

from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import noren as nr
from noren.designs.decoys import DecoyDesign
from noren.designs.semantic.design import SemanticDesign
from noren.errors import ModelDoesNotApply
from noren.models import Evidence, Model, Verdict
from noren.schema.distance import DISTANCES, numeric, ordinal, read_matrix, semilattice, tree
from noren.schema.domain import Domain
from noren.schema.hierarchy import Hierarchy
from noren.schema.roles import Role
from noren.statements import CodeCells, OpenCells, SetCells
from tests.statements import exact_column, member_column, open_column, set_column

SIX = ordinal(Domain(tuple("abcdef")))


def sets(d: int, *members: tuple[int, ...]) -> SetCells:
    """Sets of any sizes as bit masks."""
    return SetCells(d, np.array([sum(1 << v for v in cell) for cell in members], np.uint64))


def judged(model: Model, distances: Any, *batches: Any, hierarchy: Hierarchy | None = None) -> Verdict:
    d = len(distances) if distances is not None else len(hierarchy.leaves)
    column = set_column("x", d, DecoyDesign(d=d, eta=min(model.l, d)), distances=distances, hierarchy=hierarchy)
    check = model.check(column, Evidence({"x": column}, {}))
    for cells in batches:
        check.observe({"x": cells})
    return check.verdict()


def semantic(l: int, d: float) -> nr.models.SemanticDiversity:
    return nr.models.SemanticDiversity(on="x", l=l, d=d)


# ---------------------------------------------------------------- sets


def test_sets_that_are_far_enough_apart() -> None:
    verdict = judged(semantic(3, 2), SIX, sets(6, (0, 2, 4), (1, 3, 5)), sets(6, (0, 3, 5)))
    assert verdict.holds is True
    assert (verdict.required, verdict.achieved, verdict.records, verdict.breaches) == (3, 3, 3, 0)
    assert (verdict.model, verdict.column, verdict.basis) == ("semantic-diversity", "x", "the published design")
    assert verdict.statement == (
        "every record leaves 3 values possible at a pairwise distance of 2 or more; somebody who thinks all "
        "values equally "
        "likely believes no value of a set with more than 0.3333"
    )


def test_sets_with_neighbours_are_counted_one_by_one_and_repeated() -> None:
    near, worse = (0, 1, 4), (2, 3, 4)
    cells = sets(6, (0, 2, 4), near, near, worse)
    verdict = judged(semantic(3, 2), SIX, cells, sets(6, near))
    assert verdict.holds is False
    assert (verdict.achieved, verdict.records, verdict.breaches) == (2, 5, 4)


def test_no_two_members_of_a_block_are_apart() -> None:
    verdict = judged(semantic(2, 3), SIX, sets(6, (0, 1, 2)))
    assert (verdict.holds, verdict.achieved, verdict.breaches) == (False, 1, 1)


def test_a_larger_set_need_only_hold_l_such_values() -> None:
    """Neighbours beside three values that are far apart do no harm; without the three they do."""
    verdict = judged(semantic(3, 2), SIX, sets(6, (0, 1, 2, 3, 4), (0, 1, 2, 3, 5), (0, 1, 2, 3)))
    assert (verdict.achieved, verdict.records, verdict.breaches) == (2, 3, 1)
    assert judged(semantic(3, 2), SIX, sets(6, (0, 1, 2, 4))).achieved == 3


def test_sets_that_are_too_small_fall_short_whatever_their_distance() -> None:
    verdict = judged(semantic(3, 2), SIX, sets(6, (0, 5), (3,)))
    assert (verdict.holds, verdict.achieved, verdict.breaches) == (False, 1, 2)


def test_a_design_that_may_tell_too_much_is_a_breach_for_everybody() -> None:
    """Sets that hold, of a design that may yet draw one whose member is believed too much."""
    sound = judged(semantic(3, 2), SIX, sets(6, (0, 2, 4), (1, 3, 5)))
    found = semantic(3, 2).with_belief(sound, 1 / 3, 0.4)
    assert (found.holds, found.breaches, found.records) == (False, 2, 2)
    assert "more than 0.4, where 0.3333 was asked" in found.statement
    one = judged(semantic(3, 2), SIX, sets(6, (0, 2, 4), (0, 1, 4)))
    assert semantic(3, 2).with_belief(one, 1 / 3, 0.4).breaches == 1


def test_no_records_prove_nothing() -> None:
    for batches in ((), (sets(6),)):
        verdict = judged(semantic(2, 1), SIX, *batches)
        assert (verdict.holds, verdict.achieved, verdict.records) == (False, 0, 0)


def test_a_distance_that_is_short_by_rounding_alone_counts() -> None:
    """0.3 - 0.1 is less than 0.2 in floating point."""
    tenths = numeric(Domain(("0.1", "0.3", "0.49"), "number"))
    assert tenths[0, 1] < 0.2
    assert judged(semantic(2, 0.2), tenths, sets(3, (0, 1))).holds is True
    assert judged(semantic(2, 0.2), tenths, sets(3, (1, 2))).holds is False


TREE = Hierarchy.from_tree({"virus": {"hiv": ["hiv-1", "hiv-2"], "flu": ["flu"]}, "bone": {"leg": ["leg"]}})
ILLS = Domain(("hiv-1", "hiv-2", "flu", "leg"))
MATRIX = ",hiv-1,hiv-2,flu,leg\nhiv-1,0,1,2,3\nhiv-2,1,0,2,3\nflu,2,2,0,3\nleg,3,3,3,0\n"
PAIRS = [("hiv-1", "hiv"), ("hiv-2", "hiv"), ("hiv", "virus"), ("flu", "virus"), ("virus", "all"), ("leg", "all")]


@pytest.mark.parametrize("kind", ["tree", "matrix", "semilattice"])
def test_two_kinds_of_one_virus_are_no_answer(kind: str, tmp_path: Path) -> None:
    (tmp_path / "ills.csv").write_text(MATRIX)
    made = {
        "tree": lambda: tree(ILLS, TREE),
        "matrix": lambda: read_matrix(tmp_path / "ills.csv", ILLS),
        "semilattice": lambda: semilattice(PAIRS, ILLS),
    }
    distances = made[kind]()
    assert judged(semantic(2, 1), distances, sets(4, (0, 1))).holds is True
    assert judged(semantic(2, 2), distances, sets(4, (0, 1))).holds is False
    assert judged(semantic(2, 2), distances, sets(4, (0, 2), (1, 3))).holds is True
    assert judged(semantic(3, 2), distances, sets(4, (0, 2, 3))).holds is True
    assert judged(semantic(2, 3), distances, sets(4, (0, 2))).holds is False


def test_rank_and_number_are_different_distances() -> None:
    """Incomes of 1 to 4 and 30: one apart by rank at the end, far apart in money."""
    incomes = Domain(("1", "2", "3", "4", "30"), "integer")
    both = {name: DISTANCES[name](incomes, None) for name in ("ordinal", "numeric")}
    cells = sets(5, (3, 4))
    assert judged(semantic(2, 2), both["ordinal"], cells).holds is False
    assert judged(semantic(2, 2), both["numeric"], cells).holds is True


def test_wide_domains_are_judged_alike() -> None:
    far = ordinal(Domain(tuple(map(str, range(70)))))
    cells = SetCells.from_codes(70, np.array([[0, 10, 20], [3, 12, 69], [3, 12, 69]]))
    verdict = judged(semantic(3, 10), far, cells)
    assert (verdict.achieved, verdict.records, verdict.breaches) == (2, 3, 2)


def test_le_diversity_counts_subtrees() -> None:
    """At depth 1 the two viruses are one subtree; at depth 2 hiv and flu differ; at depth 3 every value does."""
    pair, other = sets(4, (0, 2)), sets(4, (0, 3))
    for depth, holds in ((1, False), (2, True), (3, True)):
        assert judged(nr.models.LEDiversity(on="x", l=2, e=depth), None, pair, hierarchy=TREE).holds is holds
        assert judged(nr.models.LEDiversity(on="x", l=2, e=depth), None, other, hierarchy=TREE).holds is True
    verdict = judged(nr.models.LEDiversity(on="x", l=3, e=2), None, sets(4, (0, 1, 3), (0, 2, 3)), hierarchy=TREE)
    assert (verdict.model, verdict.required, verdict.achieved, verdict.breaches) == ("le-diversity", 3, 2, 1)


def test_le_diversity_needs_a_tree_that_is_deep_enough() -> None:
    with pytest.raises(ModelDoesNotApply, match="at least 4 levels"):
        judged(nr.models.LEDiversity(on="x", l=2, e=4), None, hierarchy=TREE)
    with pytest.raises(ModelDoesNotApply, match="needs a hierarchy"):
        judged(nr.models.LEDiversity(on="x", l=2, e=1), SIX)


def test_semantic_diversity_needs_a_distance() -> None:
    with pytest.raises(ModelDoesNotApply, match="needs a distance"):
        judged(semantic(2, 1), None, hierarchy=TREE)


@pytest.mark.parametrize("make", [exact_column, open_column])
@pytest.mark.parametrize(
    "model", [semantic(2, 1), nr.models.LEDiversity(on="x", l=2, e=1)], ids=lambda model: model.model
)
def test_columns_published_exactly_are_refused(model: Model, make: Any) -> None:
    column = make("x", 4, distances=SIX[:4, :4], hierarchy=TREE)
    with pytest.raises(ModelDoesNotApply, match="makes no statement about column 'x'"):
        model.check(column, Evidence({"x": column}, {}))


@pytest.mark.parametrize(
    "cells",
    [
        CodeCells(6, np.array([1, 2], np.uint8)),
        sets(5, (0, 2)),
        SetCells(6, np.array([1 << 6 | 1], np.uint64)),
    ],
    ids=["values", "another domain", "a value outside"],
)
def test_cells_that_are_not_such_sets_are_refused(cells: Any) -> None:
    with pytest.raises(ModelDoesNotApply, match="'x'"):
        judged(semantic(2, 2), SIX, cells)


def test_a_set_that_repeats_a_value_is_refused() -> None:
    far = ordinal(Domain(tuple(map(str, range(70)))))
    with pytest.raises(ModelDoesNotApply, match="repeats a value"):
        judged(semantic(2, 2), far, SetCells(70, np.array([[0, 0, 9]], np.uint8)))


@pytest.mark.parametrize("given", [{"l": 1, "d": 1}, {"l": 2, "d": 0}, {"l": 2, "d": -1}, {"l": 2.5, "d": 1}, {"l": 2}])
def test_parameters_out_of_range(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        nr.models.SemanticDiversity(on="x", **given)


@st.composite
def published(draw: st.DrawFn) -> tuple[np.ndarray, list[tuple[int, ...]], int, float]:
    """A symmetric table of small distances, some sets over its values, l and d."""
    F = draw(st.integers(2, 7))
    upper = draw(st.lists(st.integers(0, 4), min_size=F * F, max_size=F * F))
    table = np.triu(np.array(upper, float).reshape(F, F), 1)
    some = st.sets(st.integers(0, F - 1), min_size=1).map(lambda s: tuple(sorted(s)))
    return (
        table + table.T,
        draw(st.lists(some, min_size=1, max_size=6)),
        draw(st.integers(2, 4)),
        draw(st.sampled_from([1.0, 2.0, 2.5, 4.0])),
    )


def most_apart(members: tuple[int, ...], table: np.ndarray, d: float) -> int:
    """Size of the largest subset in which all pairs are d apart, by trying all."""
    return max(
        size
        for size in range(1, len(members) + 1)
        for chosen in combinations(members, size)
        if all(table[a, b] >= d for a, b in combinations(chosen, 2))
    )


@given(published())
@settings(max_examples=150, deadline=None)
def test_verdicts_against_all_subsets(given: tuple[np.ndarray, list[tuple[int, ...]], int, float]) -> None:
    table, cells, l, d = given
    verdict = judged(semantic(l, d), table, sets(len(table), *cells))
    sizes = [most_apart(members, table, d) for members in cells]
    assert verdict.breaches == sum(size < l for size in sizes)
    assert verdict.achieved == min(l, *sizes)
    assert verdict.holds is (min(sizes) >= l)


# ---------------------------------------------------------------- classes of records


def classes_judged(model: Model, rows: list[tuple[int, int]], distances: Any = SIX) -> Verdict:
    """Records with their place, by which they are found, and their value."""
    secret = exact_column("x", len(distances), role=Role.SENSITIVE, distances=distances)
    columns = {"x": secret, "where": exact_column("where", 9, role=Role.QUASI_IDENTIFIER)}
    check = model.check(secret, Evidence(columns, {}))
    where, value = np.array(rows, np.uint8).reshape(-1, 2).T
    check.observe({"x": CodeCells(len(distances), value), "where": CodeCells(9, where)})
    return check.verdict()


def test_a_class_of_near_values_fails() -> None:
    """0 and 1 differ and mean nearly the same."""
    verdict = classes_judged(semantic(2, 2), [(0, 0), (0, 1), (1, 0), (1, 3)])
    assert (verdict.holds, verdict.achieved, verdict.breaches, verdict.short) == (False, 1, 2, 1)
    assert classes_judged(semantic(2, 1), [(0, 0), (0, 1), (1, 0), (1, 3)]).holds is True


def test_a_rare_distant_value_does_not_save_a_class() -> None:
    rows = [(0, 0), (0, 0), (0, 1), (0, 5)]
    assert classes_judged(semantic(2, 2), rows).achieved == pytest.approx(4 / 3)
    loose = nr.models.SemanticDiversity(on="x", l=2, d=2, most=0.75)
    verdict = classes_judged(loose, rows)
    assert (verdict.holds, verdict.achieved) == (True, 2)
    assert "2 values of every class stay possible at a pairwise distance of 2" in verdict.statement
    assert classes_judged(loose, [(0, 0), (0, 1), (0, 2), (0, 1)]).holds is False


def test_classes_of_nobody_prove_nothing() -> None:
    verdict = classes_judged(semantic(2, 2), [])
    assert (verdict.holds, verdict.achieved, verdict.records, verdict.breaches) == (False, 0, 0, 0)


def test_a_class_needs_a_distance() -> None:
    secret = exact_column("x", 3, role=Role.SENSITIVE)
    where = exact_column("where", 9, role=Role.QUASI_IDENTIFIER)
    with pytest.raises(ModelDoesNotApply, match="needs a distance"):
        semantic(2, 2).check(secret, Evidence({"x": secret, "where": where}, {}))


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5)), min_size=1, max_size=14), st.sampled_from([2, 3]))
@settings(max_examples=150, deadline=None)
def test_classes_of_records_against_the_definition(rows: list[tuple[int, int]], l: int) -> None:
    """No value with its neighbours exceeds 1/l, and then each value lies among l of the class that are far apart."""
    short = 0
    for place in {place for place, _ in rows}:
        times = Counter(value for at, value in rows if at == place)
        near = max(sum(times[u] for u in times if SIX[u, v] < 2) for v in times)
        far = [s for s in combinations(times, l) if all(SIX[a, b] >= 2 for a, b in combinations(s, 2))]
        if near * l <= times.total():
            assert all(any(value in s for s in far) for value in times)
        else:
            short += times.total()
    verdict = classes_judged(semantic(l, 2), rows)
    assert (verdict.breaches, verdict.holds) == (short, short == 0)


def test_many_classes_are_judged_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(place, value) for place in range(8) for value in ((0, 5) if place % 2 else (0, 1))]
    whole = classes_judged(semantic(2, 2), rows)
    monkeypatch.setattr("noren.models.semantic_diversity.CELLS", 12)
    assert classes_judged(semantic(2, 2), rows) == whole
    assert whole.short == 4


def test_the_frontier_of_classes() -> None:
    """Place 0 leaves two values five apart, place 1 two that are three apart."""
    rows = [(0, 0), (0, 5), (1, 1), (1, 4)]
    found = nr.measure(
        pl.DataFrame({"where": [a for a, _ in rows], "x": [v for _, v in rows]}),
        nr.Policy(
            attributes={
                "where": "quasi-identifier",
                "x": {"role": "sensitive", "distance": "ordinal", "values": [*range(6)]},
            },
            require=[semantic(2, 1)],
        ),
    )
    assert found.value("semantic-diversity", l=2) == 3
    assert found.value("semantic-diversity", l=3) == 0


# ---------------------------------------------------------------- rows with one member each


def rows_judged(
    model: Model, *batches: tuple[list[Any], list[int]], eta: int | None = None, others: Any = exact_column
) -> Verdict:
    """A release of shuffled rows: beside each value the exact column that all rows of a person share."""
    design = None if eta is None else SemanticDesign.make("flat", SIX, eta, 2)
    member = member_column("x", 6, design, distances=SIX)
    where = others("where", 9)
    check = model.check(member, Evidence({"x": member, "where": where}, {}))
    assert check.needs == ("x", "where")
    for places, values in batches:
        exact = CodeCells(9, np.array(places, np.uint8)) if others is exact_column else OpenCells(pa.array(places))
        check.observe({"x": CodeCells(6, np.array(values, np.uint8)), "where": exact})
    return check.verdict()


def test_rows_of_two_people_in_two_places() -> None:
    verdict = rows_judged(semantic(3, 2), ([0, 1, 0], [0, 1, 4]), ([1, 0, 1], [5, 2, 3]), eta=3)
    assert verdict.holds is True
    assert (verdict.required, verdict.achieved, verdict.records, verdict.breaches) == (3, 3, 2, 0)
    assert verdict.statement.startswith("every class leaves 3 values possible at a pairwise distance of 2 or more; ")


def test_two_people_in_one_place_are_judged_together() -> None:
    """0 and 1 are neighbours, but each has its own partners: {0, 2, 4} and {1, 3, 5}."""
    verdict = rows_judged(semantic(3, 2), ([7] * 6, [0, 1, 2, 3, 4, 5]), eta=3)
    assert (verdict.holds, verdict.records, verdict.breaches) == (True, 2, 0)


def test_two_people_with_the_same_set() -> None:
    assert rows_judged(semantic(3, 2), ([7] * 6, [0, 0, 2, 2, 4, 4]), eta=3).holds is True


def test_a_value_without_partners_fails_its_class_alone() -> None:
    """In place 1 the values 1, 2 and 5: 1 and 2 are too close, so neither has two partners."""
    verdict = rows_judged(semantic(3, 2), ([0, 0, 0, 1, 1, 1], [0, 2, 4, 1, 2, 5]), eta=3)
    assert verdict.holds is False
    assert (verdict.achieved, verdict.records, verdict.breaches) == (2, 2, 1)


def test_a_value_that_comes_more_often_than_there_are_people() -> None:
    """Six rows for two people, but 0 three times: one of them would have it twice."""
    verdict = rows_judged(semantic(3, 2), ([7] * 6, [0, 0, 0, 2, 4, 5]), eta=3)
    assert (verdict.holds, verdict.records, verdict.breaches) == (False, 2, 2)


@pytest.mark.parametrize("values", [[0, 2], [0], [0, 2, 4, 5]])
def test_rows_that_do_not_divide_into_people(values: list[int]) -> None:
    verdict = rows_judged(semantic(3, 2), ([7] * len(values), values), eta=3)
    assert verdict.holds is False
    assert verdict.breaches == verdict.records == -(-len(values) // 3)


def test_a_requirement_that_is_weaker_than_the_sets_counts_people_by_the_sets() -> None:
    """Sets of three values meet l = 2; three rows are one person, not one and a half."""
    verdict = rows_judged(semantic(2, 2), ([0, 0, 0], [0, 2, 4]), eta=3)
    assert (verdict.holds, verdict.records, verdict.breaches) == (True, 1, 0)


def test_sets_smaller_than_l_fail_even_where_the_class_is_rich() -> None:
    verdict = rows_judged(semantic(3, 2), ([7] * 6, [0, 2, 4, 0, 2, 4]), eta=2)
    assert (verdict.holds, verdict.achieved, verdict.records, verdict.breaches) == (False, 2, 3, 3)


def test_missing_cells_of_an_open_column_are_a_class_of_their_own() -> None:
    good = (["a", None, "a", None], [0, 1, 2, 3])
    assert rows_judged(semantic(2, 2), good, eta=2, others=open_column).holds is True
    mixed = (["a", None, "a", None], [0, 2, 1, 3])
    assert rows_judged(semantic(2, 2), mixed, eta=2, others=open_column).holds is False


def test_no_rows_prove_nothing() -> None:
    for batches in ((), (([], []),)):
        verdict = rows_judged(semantic(2, 2), *batches, eta=2)
        assert (verdict.holds, verdict.achieved, verdict.records, verdict.breaches) == (False, 0, 0, 0)


def test_rows_without_any_other_column_are_one_class() -> None:
    member = member_column("x", 6, distances=SIX)
    for values, holds in (([0, 2, 1, 3], True), ([0, 2, 2, 2], False)):
        check = semantic(2, 2).check(member, Evidence({"x": member}, {}))
        check.observe({"x": CodeCells(6, np.array(values, np.uint8))})
        assert check.verdict().holds is holds


def test_le_diversity_of_rows() -> None:
    column = member_column("x", 4, hierarchy=TREE)
    for values, holds in (([0, 3], True), ([0, 2], False)):
        check = nr.models.LEDiversity(on="x", l=2, e=1).check(column, Evidence({"x": column}, {}))
        check.observe({"x": CodeCells(4, np.array(values, np.uint8))})
        assert check.verdict().holds is holds


def test_rows_must_hold_members_of_the_domain() -> None:
    member = member_column("x", 6, distances=SIX)
    for cells in (sets(6, (0, 2)), CodeCells(5, np.array([0, 2], np.uint8))):
        check = semantic(2, 2).check(member, Evidence({"x": member}, {}))
        with pytest.raises(ModelDoesNotApply, match="6 values"):
            check.observe({"x": cells})


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5)), min_size=1, max_size=14), st.sampled_from([2, 3]))
@settings(max_examples=150, deadline=None)
def test_classes_against_the_definition(rows: list[tuple[int, int]], l: int) -> None:
    """Per place: rows divide, no value outnumbers the people, every value lies in l values of the class apart."""
    short = 0
    for place in {place for place, _ in rows}:
        times = Counter(value for at, value in rows if at == place)
        fits = times.total() % l == 0 and max(times.values()) <= times.total() // l
        far = [s for s in combinations(times, l) if all(SIX[a, b] >= 2 for a, b in combinations(s, 2))]
        partners = all(any(value in s for s in far) for value in times)
        short += 0 if fits and partners else -(-times.total() // l)
    verdict = rows_judged(semantic(l, 2), ([place for place, _ in rows], [value for _, value in rows]), eta=l)
    assert verdict.breaches == short
    assert verdict.holds is (short == 0)


def test_no_more_values_are_looked_for_than_are_asked() -> None:
    from noren.models.set_check import largest_separated

    apart = ~np.eye(5, dtype=bool)
    codes = np.array([[0, 1, 2, 3], [1, 2, 3, 4]])
    for enough in (1, 2, 3, 4, 9):
        assert largest_separated(codes, apart, enough).tolist() == [min(4, enough)] * 2


def test_distances_below_one_count() -> None:
    from noren.models.semantic_diversity import frontier

    distances = np.array([[0, 0.25, 0.5], [0.25, 0, 0.75], [0.5, 0.75, 0]])
    assert frontier(np.array([[0, 1], [0, 2]]), distances, 2) == 0.25
    assert frontier(np.array([[0, 2], [1, 2]]), distances, 2) == 0.5
    assert frontier(np.array([[0, 1]]), distances, 3) == 0


def test_the_frontier_is_measured_on_sets_and_on_members_in_rows_of_their_own() -> None:
    from noren.designs.decoys import DecoyDesign
    from noren.models.base import Evidence
    from noren.models.semantic_diversity import SemanticDiversity
    from noren.schema.column import Column
    from noren.schema.domain import Domain
    from noren.schema.roles import Role
    from noren.statements import MemberStatement, SetStatement

    column = Column(role=Role.SENSITIVE, distance="ordinal").over("grade", Domain(("a", "b", "c"), source="policy"))
    model, design = SemanticDiversity(on="grade", l=2, d=1), DecoyDesign(d=3, eta=2)
    assert model.measuring(Evidence({"grade": SetStatement(column, design)}, {}, False)).column == "grade"
    assert model.measuring(Evidence({"grade": MemberStatement(column, design)}, {}, False)).column == "grade"
