"""Small decisions of the pipeline at their ends: what is compared, drawn on a map, listed, put together, advised."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import noren as nr
from noren.audit.risk.raw import RawColumn, RawTable, class_sizes, find_uniques, joined, lonely
from noren.engines import Recode
from noren.errors import QueryError
from noren.schema.column import Column
from noren.schema.domain import MISSING, OTHER, Domain, whole_domain
from noren.schema.nodes import Nodes
from noren.schema.roles import Role
from noren.secret import ClassSets
from noren.workflow import compare_terms, comparison
from noren.workflow.compare import MOST_SETTINGS, settings, under
from noren.workflow.comparison import Candidate
from noren.workflow.dependence import picked
from noren.workflow.republish import _of_people
from noren.workflow.shown import line_kind, may_be_listed, show_nodes, unspecial

ATTRIBUTES = {"town": "quasi-identifier", "ill": "sensitive"}
ASKED = [nr.models.KAnonymity(k=5), nr.models.DistinctLDiversity(on="ill", l=3)]
POLICY = nr.Policy(attributes=ATTRIBUTES, require=ASKED, method="mondrian")


# ---------------------------------------------------------------- comparisons


def test_a_snippet_has_a_section_for_every_method() -> None:
    one, two = nr.methods.Mondrian(), nr.methods.Decoys()
    assert Candidate("one", (one,), 0.0).snippet.splitlines()[0] == "[method]"
    assert Candidate("both", (one, two), 0.0).snippet.splitlines().count("[[method]]") == 2


def test_risk_is_right_guesses_or_else_the_largest_share() -> None:
    assert Candidate("a", (), 0.0, worst_share=0.5).risk == 0.5
    assert Candidate("a", (), 0.0, worst_share=0.5, belief=0.0).risk == 0.0
    assert Candidate("a", (), 0.0, setting={"k": 5.0, "t": 0.25}).called == "a, k = 5, t = 0.25"
    failed = Candidate("a", (), 0.0, failure="too few")
    assert (failed.holds, failed.figures()["failure"], "setting" in failed.figures()) == (False, "too few", False)


def test_a_grid_is_every_combination_of_known_parameters() -> None:
    assert settings(POLICY, {}) == [{}]
    found = settings(POLICY, {"k": [5, 10], "l": [2, 3]})
    assert found == [{"k": k, "l": size} for k in (5, 10) for size in (2, 3)]
    assert len(settings(POLICY, {"k": list(range(2, 2 + MOST_SETTINGS))})) == MOST_SETTINGS
    for grid, said in (
        ({"k": list(range(2, 3 + MOST_SETTINGS))}, f"{MOST_SETTINGS + 1} settings"),
        ({"t": [0.1]}, "no requirement has a parameter 't'"),
        ({"k": []}, "no values of 'k' to try"),
    ):
        with pytest.raises(QueryError, match=said):
            settings(POLICY, grid)


def test_a_setting_changes_what_has_the_parameter_and_nothing_else() -> None:
    assert under(POLICY, {}) is POLICY
    changed = under(POLICY, {"k": 9})
    assert [getattr(model, "k", getattr(model, "l", None)) for model in changed.require] == [9, 3]
    assert changed.attributes == POLICY.attributes
    with pytest.raises(QueryError, match="k-anonymity cannot have k = 1: "):
        under(POLICY, {"k": 1})


@pytest.mark.parametrize(("spread", "word"), [([1, 1], "removal"), ([1, 2], "both"), ([2, 1], "removal")])
def test_terms_that_are_left_out_beside_general_values_are_both(spread: list[int], word: str) -> None:
    """The last of three records is left out; it alone has the second value."""
    column = SimpleNamespace(spread=np.array(spread), cells=np.array([0, 0, 1]))
    view: Any = SimpleNamespace(keep=np.array([0, 1]), quasi_columns=lambda: [column])
    if spread == [1, 2]:
        view.keep = np.array([0, 2])
    elif spread == [2, 1]:
        view.keep = np.array([2])
    assert compare_terms._way(nr.methods.Suppress(k=2), view) == word
    assert compare_terms._way(nr.methods.Mondrian(), view) == "generalisation"
    assert compare_terms.DIMENSIONS == (1, 3, 5)


@pytest.mark.parametrize(
    ("k", "way", "own", "label"),
    [
        (5, "both", False, "k=5"),
        (5, "removal", False, f"k=5, {compare_terms.ENDS['removal']}"),
        (None, "generalisation", False, compare_terms.ENDS["generalisation"]),
        (5, "removal", True, ""),
    ],
)
def test_what_stands_beside_a_point_of_the_curve(k: int | None, way: str, own: bool, label: str) -> None:
    assert compare_terms._label(SimpleNamespace(k=k, way=way, own=own)) == label  # type: ignore[arg-type]


# ---------------------------------------------------------------- the map


@pytest.mark.parametrize("far", [False, True])
def test_labels_stand_beside_their_points_on_either_axis(far: bool) -> None:
    """Three points at one place: two labels beside it, the next a line above, then a line below."""
    error = 10.0
    many = [Candidate(f"m{i}", (), 0.0, belief=0.5, query_loss=error) for i in range(6)]
    x, y = (0.2, 1.0), ((0.0, 2.0) if far else (0.0, 20.0))
    found = comparison._labels(many, many, x, y, far)
    line = comparison.LINE / comparison.HEIGHT * (y[1] - y[0])
    middle = 1.0 if far else error
    heights = [middle, middle, middle + line, middle + line, middle - line, middle - line]
    assert [one["error"] for one in found] == pytest.approx([10**h if far else h for h in heights])
    across = (0.5 - 0.2) / 0.8 * comparison.WIDTH
    wide = 2 * comparison.LETTER
    right, left = across + comparison.POINT + 3, across - comparison.POINT - 3 - wide
    assert [one["risk"] for one in found] == pytest.approx(
        [0.2 + at / comparison.WIDTH * 0.8 for at in [right, left] * 3]
    )
    assert len(comparison._labels([*many, many[0]], many, x, y, far)) == 6, "without room none"


@pytest.mark.parametrize(
    ("values", "span"),
    [
        ((1.0, 2.0), (0.92, 2.08)),
        ((0.01, 2.0), (0.0, 2.0 + 1.99 * 0.08)),
        ((-1.0, 1.0), (-1.16, 1.16)),
        ((5.0, 5.0), (4.6, 5.4)),
        ((0.5,), (0.42, 0.58)),
        ((), (0.0, 1.08)),
    ],
)
def test_an_axis_has_room_around_its_values(values: tuple[float, ...], span: tuple[float, float]) -> None:
    assert comparison._span(values) == pytest.approx(span)


# ---------------------------------------------------------------- domains


@pytest.mark.parametrize(
    ("source", "listed"), [("data", ["a", MISSING]), ("policy", ["a", "b", MISSING]), ("bins", ["a", "b", MISSING])]
)
def test_what_nobody_has_is_listed_only_where_it_was_declared(source: Any, listed: list[str]) -> None:
    domain = Domain(("a", "b", OTHER, MISSING), "string", source)
    found = may_be_listed(domain, np.array([True, False, False, True]))
    assert [value for value, is_listed in zip(domain.values, found, strict=True) if is_listed] == listed
    assert unspecial(domain).tolist() == [True, True, False, False]


@pytest.mark.parametrize(
    ("domain", "kind"),
    [
        (whole_domain(10, 13, True, True, False), ("integer", 0)),
        (whole_domain(-3, 3, False, True, True), ("integer", 0)),
        (Domain(("below 0.5", "0.5", "1.5 and above"), top=1.5, bottom=0.5), ("number", 0)),
        (Domain(("10", "11"), "integer"), ("integer", 0)),
        (Domain(("1.5", "2"), "number"), ("number", 0)),
        (Domain(("[0, 1)", "[1, 2]"), edges=(0.0, 1.0, 2.0), source="bins"), None),
        (Domain(("anna", "bert")), None),
    ],
)
def test_what_stands_on_a_line(domain: Domain, kind: Any) -> None:
    assert line_kind(domain) == kind


def test_stand_ins_are_named_after_what_else_lies_under_a_general_value() -> None:
    """The lower half is published inside the whole: the whole stands for what is not in the half."""
    column = Column(role=Role.QUASI_IDENTIFIER).over("name", Domain(("anna", "bert", "carl", "dora")))
    nodes = Nodes.from_members(4, ["low", "all", "dora"], [(0, 1), (0, 1, 2, 3), (3,)])
    data = np.array([0, 0, 1, 1, 2])
    codes = np.array([0, 1, 2, 0, 3])
    found = show_nodes(column, Recode(nodes, data), codes, np.ones(5, bool))
    assert set(found.column.domain.values) == {"dora", "low", "other all"}
    index = found.column.domain.index
    under = {label: set(found.nodes.members(node).tolist()) for node, label in enumerate(found.nodes.labels)}
    assert under == {
        "low": {index["low"]},
        "all": {index["low"], index["other all"], index["dora"]},
        "dora": {index["dora"]},
    }
    alone = show_nodes(
        column, Recode(Nodes.from_members(4, ["all"], [(0, 1, 2, 3)]), np.zeros(5, np.int64)), codes, np.ones(5, bool)
    )
    assert alone.column.domain.values == ("all",)


# ---------------------------------------------------------------- people


@pytest.mark.parametrize(("person", "people", "sets"), [
    ([1, 0, 2], 3, ["bc", "ab", "c"]),
    ([0, 0, 1], 2, ["abc", "c"]),
    ([1, 0, 1], 2, ["bc", "abc"]),
])  # fmt: skip
def test_several_records_of_a_person_leave_all_their_values_possible(
    person: list[int], people: int, sets: list[str]
) -> None:
    own = ClassSets(("a", "b", "c"), np.array([0, 1, 2]), np.array([0, 2, 4, 5]), np.array([0, 1, 1, 2, 2]))
    found = _of_people(own, np.array(person), people)
    words = [
        "".join("abc"[code] for code in found.codes[found.bounds[one] : found.bounds[one + 1]])
        for one in found.which.tolist()
    ]
    assert words == sets


def raw(*columns: list[float], people: list[int] | None = None) -> RawTable:
    made = []
    for number, values in enumerate(columns):
        found = np.array(values, float)
        distinct, codes = np.unique(found, return_inverse=True)
        made.append(RawColumn(f"c{number}", codes.reshape(-1).astype(np.int64), len(distinct), 0, "number", found))
    return RawTable("t", len(columns[0]), tuple(made), None if people is None else np.array(people))


def test_rows_are_alike_where_all_columns_are() -> None:
    rng = np.random.default_rng(1)
    columns = [rng.integers(0, 3, 20).tolist() for _ in range(3)]
    table = raw(*columns)
    lines = list(zip(*columns, strict=True))
    for rows in (None, np.array([3, 0, 7, 7, 12])):
        found = joined(table, [0, 1, 2], rows)
        own = lines if rows is None else [lines[row] for row in rows]
        assert [[a == b for b in own] for a in own] == (found[:, None] == found).tolist()
    assert set(joined(table, []).tolist()) == {0}
    sizes, of = class_sizes(table, [0, 1])
    pairs = list(zip(*columns[:2], strict=True))
    assert sizes[of].tolist() == [pairs.count(one) for one in pairs]


@pytest.mark.parametrize("people", [None, [0, 0, 1, 2, 2, 3, 4, 5, 6]])
def test_who_is_alone_with_what_by_looking_at_everybody(people: list[int] | None) -> None:
    rng = np.random.default_rng(4)
    columns = [rng.integers(0, 2, 9).tolist() for _ in range(3)]
    table = raw(*columns, people=people)
    whose = list(range(9)) if people is None else people
    found = find_uniques(table, 3)
    lines = list(zip(*columns, strict=True))

    def alone(row: int, chosen: tuple[int, ...]) -> bool:
        same = [r for r in range(9) if all(lines[r][c] == lines[row][c] for c in chosen)]
        return len({whose[r] for r in same}) == 1

    every = [own for size in (1, 2, 3) for own in combinations(range(3), size)]
    told = {one.columns: (one.alone, one.minimal) for one in found.combinations}
    for chosen in every:
        rows = [row for row in range(9) if alone(row, chosen)]
        parts = [own for own in every if set(own) < set(chosen)]
        minimal = [row for row in rows if not any(alone(row, own) for own in parts)]
        assert told[tuple(f"c{i}" for i in chosen)] == (len({whose[r] for r in rows}), len(minimal))


@pytest.mark.parametrize("people", [None, [0, 0, 1, 2, 3, 3, 4, 5]])
@pytest.mark.parametrize("within", [0.05, 0.2, 0.6])
def test_who_has_nobody_near_by_looking_at_everybody(people: list[int] | None, within: float) -> None:
    values = [0.0, 0.0, 1.0, 3.0, 6.0, 6.5, 10.0, np.nan]
    other = [0.0, 1.0, 0.0, 5.0, 5.0, 5.0, 9.0, 1.0]
    whose = list(range(8)) if people is None else people
    for columns in ([values], [values, other]):
        table = raw(*columns, people=people)
        reach = [np.nanstd(np.array(own)) * within for own in columns]
        near = [
            any(
                whose[other_row] != whose[row]
                and all(
                    abs(own[row] - own[other_row]) <= far * (1 + 1e-9) for own, far in zip(columns, reach, strict=True)
                )
                for other_row in range(8)
            )
            for row in range(8)
        ]
        expected = [not is_near and not np.isnan(values[row]) for row, is_near in enumerate(near)]
        assert lonely(table, range(len(columns)), within).tolist() == expected


def test_a_share_of_one_is_everybody_who_is_published() -> None:
    keep = np.array([True, False, True, True])
    assert picked(keep, 1.0, np.random.default_rng(0)).tolist() == [0, 2, 3]
    assert picked(keep[:0], 0.5, np.random.default_rng(0)).tolist() == []
    assert set(picked(keep, 0.5, np.random.default_rng(0)).tolist()) <= {0, 2, 3}
    assert picked(keep, 0.0, np.random.default_rng(0)).tolist() == []
