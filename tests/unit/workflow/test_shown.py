"""General values over texts that nobody declared."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest

from noren.engines import Recode
from noren.schema.column import Column
from noren.schema.domain import MISSING, OTHER, Domain
from noren.schema.hierarchy import Hierarchy
from noren.schema.nodes import Nodes, tree_of
from noren.schema.roles import Role
from noren.workflow.shown import LONGEST_RANGE, _between, declares_leaves, line_kind, show_nodes


def test_a_general_value_over_one_text_hides_it_too() -> None:
    column = Column(role=Role.QUASI_IDENTIFIER).over("name", Domain(("anna", "bert", "carl")))
    nodes = Nodes.from_runs(3, ["a***", "*"], [[(0, 1)], [(0, 3)]])
    found = show_nodes(column, Recode(nodes, np.array([0, 0, 1]), "subtrees"), np.array([0, 0, 1]), np.ones(3, bool))
    assert found.column.domain.values == ("a***", "other *")
    assert found.column.domain.hidden == ("a***", "other *")
    labels = {label: found.nodes.members(node).tolist() for node, label in enumerate(found.nodes.labels)}
    assert labels == {"a***": [0], "*": [0, 1]}
    assert found.place.tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("top", "measure", "bounds", "values", "edges"),
    [
        (None, "integer", [(0.0, 3.0)], ("0", "1", "2"), [0, 1, 2, 3]),
        (None, "integer", [(0.0, 3.0), (3.0, inf)], ("0", "1", "2", "3 and above"), [0, 1, 2, 3, inf]),
        (None, "integer", [(-inf, 3.0)], ("below 3",), [-inf, 3]),
        (None, "integer", [(-inf, inf)], ("any",), [-inf, inf]),
        (2.0, "integer", [(0.0, 2.0)], ("0", "1", "2 and above"), [0, 1, 2, inf]),
        (None, "decimal-1", [(0.5, 3.0)], ("[0.5, 3)",), [0.5, 3]),
        (None, "decimal-1", [(0.5, inf)], ("0.5 and above",), [0.5, inf]),
    ],
)
def test_a_line_is_open_where_a_published_interval_or_the_policy_leaves_it_open(
    top: float | None, measure: str, bounds: list[tuple[float, float]], values: tuple[str, ...], edges: list[float]
) -> None:
    made, found = _between(Domain(("0", "1", "2"), "integer", top=top), measure, bounds, False)
    assert (made.values, found.tolist()) == (values, edges)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (("01234", "12345"), ("string", 5)),
        (("0" * 14 + "1", "1" * 15), ("string", 15)),
        (("0" * 15 + "1", "1" * 16), None),
        (("anna", "bert"), None),
    ],
)
def test_codes_stand_on_a_line_as_long_as_numbers_hold_them(values: tuple[str, ...], kind: object) -> None:
    assert line_kind(Domain(values)) == kind


# ---------------------------------------------------------------- numbers and dates


def on_a_line(
    domain: Domain, labels: list[str], runs: list[list[tuple[int, int]]], codes: list[int], **more: Any
) -> Any:
    """The column of general numbers as it is shown; record i has node i."""
    column = Column(role=Role.QUASI_IDENTIFIER).over("n", domain)
    nodes = Nodes.from_runs(len(domain), labels, runs)
    keep = np.array(more.get("keep", [True] * len(codes)))
    change = Recode(nodes, np.array(more.get("data", range(len(codes)))), more.get("tight"))
    return show_nodes(column, change, np.array(codes), keep)


def meant(found: Any) -> dict[str, list[str]]:
    """The published values under every general one."""
    values = found.column.domain.values
    return {label: [values[c] for c in found.nodes.members(i)] for i, label in enumerate(found.nodes.labels)}


NUMBERS = Domain(("1", "2", "3", "4", MISSING), "integer")
OPEN = "[1, 3) or (missing)"


@pytest.mark.parametrize(
    ("codes", "keep", "values", "covered"),
    [
        ([4, 2], [True, True], ("1", "2", "3", "4", MISSING), {OPEN: ["1", "2", MISSING], "[3, 5)": ["3", "4"]}),
        ([0, 4], [True, False], ("1", "2"), {OPEN: ["1", "2"]}),
        ([0, 2], [True, True], ("1", "2", "3", "4"), {OPEN: ["1", "2"], "[3, 5)": ["3", "4"]}),
    ],
)
def test_that_a_number_is_missing_is_said_where_a_published_record_has_it(
    codes: list[int], keep: list[bool], values: tuple[str, ...], covered: dict[str, list[str]]
) -> None:
    found = on_a_line(NUMBERS, [OPEN, "[3, 5)"], [[(0, 2), (4, 5)], [(2, 4)]], codes, keep=keep)
    assert found.column.domain.values == values
    assert meant(found) == covered
    place = {value: int(at) for value, at in zip(NUMBERS.values, found.place, strict=True)}
    assert place == {value: values.index(value) if value in values else -1 for value in NUMBERS.values}


def test_missing_numbers_alone_and_beside_the_last_interval() -> None:
    labels, runs = [MISSING, "[3, 5) or (missing)", "[1, 3)"], [[(4, 5)], [(2, 5)], [(0, 2)]]
    found = on_a_line(NUMBERS, labels, runs, [4, 3, 0])
    assert meant(found) == {"[1, 3)": ["1", "2"], "[3, 5) or (missing)": ["3", "4", MISSING], MISSING: [MISSING]}
    assert [found.nodes.labels[node] for node in found.data] == labels
    assert found.nodes.runs == [[(0, 2)], [(2, 5)], [(4, 5)]]


def test_a_label_that_tells_no_edges_leaves_names() -> None:
    found = on_a_line(NUMBERS, ["few", "[3, 5)"], [[(0, 2)], [(2, 4)]], [0, 2])
    assert found.column.domain.values == ("few", "[3, 5)")
    assert found.column.domain.kind == "string"


@pytest.mark.parametrize(
    ("labels", "tight", "kept"),
    [
        (["[1, 3)", "[3, 5)"], "ends", "ends"),
        (["[1, 3)", "[3, 5)"], "members", "members"),
        (["few", "[3, 5)"], "ends", None),
        (["few", "[3, 5)"], "members", "members"),
        (["few", "[3, 5)"], "subtrees", "subtrees"),
    ],
)
def test_ends_are_known_where_edges_are(labels: list[str], tight: Any, kept: Any) -> None:
    assert on_a_line(NUMBERS, labels, [[(0, 2)], [(2, 4)]], [0, 2], tight=tight).tight == kept


@pytest.mark.parametrize(
    ("domain", "kind"),
    [
        (Domain(("1", "2"), "integer"), ("integer", 0)),
        (Domain(("1.5", "2"), "number"), ("number", 0)),
        (Domain(("2020-01-01",), "date"), ("date", 0)),
        (Domain(("[0, 1)", "[1, 2]"), "string", "bins", edges=(0.0, 1.0, 2.0)), None),
        (Domain(("1", "(other)"), "integer"), None),
        (Domain(("below 1", "1", "-2", "3 and above"), bottom=1.0, top=3.0), ("integer", 0)),
        (Domain(("below 1", "1.5", "3 and above"), bottom=1.0, top=3.0), ("number", 0)),
        (Domain(("01234",)), ("string", 5)),
        (Domain(("small", "large"), source="policy"), None),
    ],
)
def test_what_stands_on_a_line(domain: Domain, kind: object) -> None:
    assert line_kind(domain) == kind


def test_a_line_of_dates_and_one_of_numbers_with_decimals() -> None:
    days = Domain(("2019-12-31", "2020-01-05", "2020-02-01"), "date")
    found = on_a_line(days, ["2019-12-31", "2020"], [[(0, 1)], [(1, 3)]], [0, 1])
    assert found.column.domain.measure == "date"
    assert found.place.tolist() == [0, 1, 1]
    halves = Domain(("0.5", "0.75", "2"), "number")
    found = on_a_line(halves, ["[0.5, 1.5)", "2"], [[(0, 2)], [(2, 3)]], [0, 2])
    assert (found.column.domain.measure, found.place.tolist()) == ("decimal-1", [0, 0, 2])


def test_long_ranges_are_told_by_their_edges_alone() -> None:
    for width, listed in ((LONGEST_RANGE, True), (LONGEST_RANGE + 1, False)):
        made, edges = _between(Domain(("0",), "integer"), "integer", [(0.0, float(width))], True)
        assert made.values[-1] == MISSING
        assert (len(made), len(edges)) == ((width + 1, width + 1) if listed else (2, 2))
    for bound, low, high in (((-inf, 5.0), True, False), ((5.0, inf), False, True), ((-inf, inf), True, True)):
        made, edges = _between(Domain(("0",), "number"), "decimal-0", [bound, (3.0, 4.0)], False)
        assert (edges[0] == -inf, edges[-1] == inf) == (low, high)
        assert made.edges == tuple(edges)
        assert not made.has_missing
    made, edges = _between(Domain(("1", "2"), "integer", bottom=1.0), "decimal-0", [(2.0, 4.0)], False)
    assert tuple(edges) == (-inf, 1.0, 2.0, 4.0)


# ---------------------------------------------------------------- texts


def named(labels: list[str], members: list[list[int]], codes: list[int], **more: Any) -> Any:
    """The column of general texts as it is shown; record i has node i."""
    values = more.get("values", ("ash", "elm", "fir", "yew", OTHER, MISSING))
    column = Column(role=Role.QUASI_IDENTIFIER).over("tree", Domain(values), hierarchy=more.get("tree"))
    nodes = Nodes.from_members(len(values), labels, members)
    keep = np.array(more.get("keep", [True] * len(codes)))
    return show_nodes(column, Recode(nodes, np.arange(len(codes)), None), np.array(codes), keep)


def test_texts_that_cells_name_stay_and_the_rest_is_one_stand_in() -> None:
    found = named(["{ash, elm}", "fir", "*"], [[0, 1], [2], [0, 1, 2, 3, 4, 5]], [0, 2, 3])
    assert found.column.domain.values == ("ash", "elm", "fir", "other *")
    assert found.column.domain.hidden == ("other *",)
    assert found.column.domain.kind == "string"
    everything = ["ash", "elm", "fir", "other *"]
    assert meant(found) == {"{ash, elm}": ["ash", "elm"], "*": everything, "fir": ["fir"]}
    assert found.place.tolist() == [0, 1, 2, 3, 3, 3]


def test_a_braced_list_of_others_names_nobody() -> None:
    found = named(["{ash, yew}", "ash"], [[0, 1], [3]], [0, 3])
    assert found.column.domain.hidden == ("{ash, yew}", "ash")
    assert found.place.tolist() == [0, 0, -1, 1, -1, -1]


@pytest.mark.parametrize(
    ("codes", "values"),
    [
        ([0, 4], (OTHER, "*")),
        ([5, 0], (MISSING, "*")),
        ([0, 1], ("*",)),
    ],
)
def test_missing_and_merged_texts_are_said_where_somebody_has_them(codes: list[int], values: tuple[str, ...]) -> None:
    found = named(["*", "*"], [[0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]], codes, keep=[True, True])
    assert found.column.domain.plain[-1].startswith(("*", "other *"))
    assert {MISSING, OTHER} & set(found.column.domain.values) == {MISSING, OTHER} & set(values)


def test_general_values_inside_general_values() -> None:
    found = named(["soft", "wood", "*"], [[0, 1], [0, 1, 2], [0, 1, 2, 3, 4, 5]], [0, 2, 3])
    assert found.column.domain.values == ("soft", "other wood", "other *")
    assert meant(found) == {
        "soft": ["soft"],
        "wood": ["soft", "other wood"],
        "*": ["soft", "other wood", "other *"],
    }
    assert found.place.tolist() == [0, 0, 1, 2, 2, 2]
    crossing = named(["one", "two"], [[0, 1], [1, 2]], [0, 2])
    assert crossing.column.domain.values == ("one", "two")
    beside = named(["soft", "hard"], [[0, 1], [2, 3]], [0, 2])
    assert beside.column.domain.values == ("soft", "hard")
    assert meant(beside) == {"soft": ["soft"], "hard": ["hard"]}


def test_a_general_value_whose_texts_are_all_named_stands_for_nobody() -> None:
    found = named(["ash", "elm", "*"], [[0], [1], [0, 1]], [0, 1, 0], values=("ash", "elm"))
    assert found.column.domain.values == ("ash", "elm", "other *")
    assert meant(found) == {"ash": ["ash"], "*": ["ash", "elm", "other *"], "elm": ["elm"]}
    assert found.place.tolist() == [0, 1]


def test_a_stand_in_has_a_name_of_its_own() -> None:
    found = named(["soft", "soft"], [[0], [1, 2]], [0, 1], values=("soft", "ash", "elm"))
    assert found.column.domain.values == ("soft", "soft ")


def test_the_levels_of_a_rule_stay_above_what_is_shown() -> None:
    levels = (("130", "131", "140"), ("13*", "13*", "14*"), ("*", "*", "*"))
    tree = Hierarchy(levels, "values")
    nodes = tree_of(tree).nodes
    assert nodes.labels == ("130", "131", "140", "13*", "*")

    def shows(tree: Hierarchy | None, data: list[int]) -> Any:
        column = Column(role=Role.QUASI_IDENTIFIER).over("zip", Domain(levels[0]), hierarchy=tree)
        return show_nodes(column, Recode(nodes, np.array(data), None), np.array([2, 0, 1]), np.ones(3, bool)).column

    assert shows(tree, [0, 3, 3]).tree.levels == (("130", "other 13*"), ("13*", "13*"), ("*", "*"))
    found = shows(tree, [2, 3, 4])
    assert found.domain.values == ("140", "13*", "other *")
    assert found.tree is not None
    assert found.tree.levels == (("140", "13*", "other *"), ("14*", "13*", "other *"), ("*", "*", "*"))
    assert found.tree.grown == "values"
    assert shows(Hierarchy(levels), [2, 3, 4]).tree is None
    assert shows(None, [2, 3, 4]).tree is None


@pytest.mark.parametrize(
    ("source", "grown", "declared"),
    [
        ("data", None, False),
        ("data", "values", False),
        ("data", "", True),
        ("policy", None, True),
        ("hierarchy", "values", True),
    ],
)
def test_leaves_are_declared_by_values_or_a_file(source: Any, grown: str | None, declared: bool) -> None:
    tree = None if grown is None else Hierarchy((("a", "b"), ("*", "*")), grown)
    column = Column(role=Role.QUASI_IDENTIFIER).over("x", Domain(("a", "b"), source=source), hierarchy=tree)
    assert declares_leaves(column) is declared
