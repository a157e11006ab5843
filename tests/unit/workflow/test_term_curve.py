"""The chart and the queries of a trade-off between left-out terms and general values, point by point."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import noren as nr
from noren.methods.mondrian import Mondrian
from noren.methods.suppress import Suppress
from noren.workflow.compare import compare
from noren.workflow.compare_terms import ENDS, TermFigures, _way
from noren.workflow.comparison import Candidate, Comparison


def point(title: str, way: str = "both", ncp: float = 0.25, cost: float = 0.5, **more: Any) -> Candidate:
    """A candidate of which the chart needs a title, two losses and how it was made."""
    told: dict[str, Any] = {"own": False, "on_curve": True, "k": 5} | more
    figures = TermFigures(
        way=way, own=told["own"], on_curve=told["on_curve"], k=told["k"], seconds_per_group=None,
        average_group=6.0, searched=0, proven=0, gap=0.0,
    )  # fmt: skip
    losses = {"ncp_loss": ncp, "term_cost_loss": cost, "belief_rise_mean_loss": 0.1}
    failure, error = told.get("failure", ""), told.get("error", 0.3)
    return Candidate(title, (), 1.0, failure=failure, losses=losses, terms=figures, query_loss=error)


def drawn(*points: Candidate) -> dict[str, Any]:
    found: dict[str, Any] = Comparison(points).chart().to_dict()
    return found


def test_only_candidates_that_hold_and_have_terms_are_points() -> None:
    without = Candidate("mondrian", (), 1.0, losses={"ncp_loss": 0.1})
    rows = drawn(point("a"), point("b", failure="k is out of reach"), without)["data"]["values"]
    assert [row["method"] for row in rows] == ["a"]
    assert rows[0] == {
        "method": "a", "way": ENDS["both"], "ncp": 0.25, "cost": 0.5, "rise": 0.1, "error": 0.3, "label": "k=5",
        "curve": True,
    }  # fmt: skip


def test_an_error_that_no_query_has_is_left_open() -> None:
    (row,) = drawn(point("a", error=float("nan")))["data"]["values"]
    assert row["error"] is None


def test_the_axes_begin_a_little_below_nothing_and_end_above_the_most() -> None:
    line, points, *_ = drawn(point("a", ncp=0.2, cost=0.0), point("b", ncp=0.4, cost=0.0))["layer"]
    for layer in (line, points):
        x, y = layer["encoding"]["x"]["scale"], layer["encoding"]["y"]["scale"]
        assert (x["domain"], x["nice"]) == (pytest.approx([-0.032, 0.46]), False), "nice would round the ends away"
        assert (y["domain"], y["nice"]) == (pytest.approx([-0.0008, 0.0115]), False)


def test_the_line_goes_through_the_curve_and_points_are_told_by_how_they_were_made() -> None:
    line, points, above, below = drawn(
        point("own", "removal", own=True),
        point("k=5"),
        point("mondrian", "generalisation", k=None, on_curve=False),
    )["layer"]
    curve = {"field": "curve", "oneOf": [True]}
    assert (line["mark"]["type"], line["transform"]) == ("line", [{"filter": curve}])
    assert above["transform"] == [{"filter": curve}]
    assert below["transform"] == [{"filter": {"not": curve}}]
    assert (points["mark"]["type"], points["mark"]["filled"]) == ("point", True)
    shown = [ENDS["both"], ENDS["generalisation"], ENDS["own"]]
    assert points["encoding"]["color"]["scale"]["domain"] == shown, "no sign for what is not there"


def test_labels_say_k_and_what_is_done_alone() -> None:
    rows = drawn(
        point("a", "removal", k=1),
        point("b", k=2),
        point("c", "generalisation", k=None, on_curve=False),
        point("d", "removal", own=True),
    )["data"]["values"]
    assert [row["label"] for row in rows] == ["k=1, term removal only", "k=2", "generalisation only", ""]
    assert [row["way"] for row in rows] == [ENDS["removal"], ENDS["both"], ENDS["generalisation"], ENDS["own"]]


@pytest.mark.parametrize(
    ("spread", "cells", "way"), [([1, 1, 2], [0, 1, 2], "removal"), ([1, 1, 2], [0, 2, 2], "both")]
)
def test_two_values_in_one_cell_are_general(spread: list[int], cells: list[int], way: str) -> None:
    """The last of the three records is not published: its cell says nothing."""
    column = SimpleNamespace(spread=np.array(spread), cells=np.array(cells))
    view: Any = SimpleNamespace(keep=np.array([True, True, False]), quasi_columns=lambda: [column])
    assert _way(Suppress(), view) == way
    assert _way(Mondrian(), view) == "generalisation"


@pytest.mark.parametrize(("quasi", "asked"), [(1, {1}), (3, {1, 3}), (5, {1, 3, 5})])
def test_queries_have_one_three_or_five_conditions_where_there_are_so_many_columns(quasi: int, asked: set[int]) -> None:
    n, names = 40, [f"q{i}" for i in range(quasi)]
    columns: dict[str, Any] = {name: [str((i >> place) % 2) for i in range(n)] for place, name in enumerate(names)}
    columns["signs"] = pa.array([["cough"] if i % 3 else ["ache", "rash"] for i in range(n)], pa.list_(pa.string()))
    known = nr.Knowledge.from_pairs([("flu", "cough"), ("flu", "ache"), ("pox", "rash"), ("pox", "cough")])
    attributes: dict[str, Any] = dict.fromkeys(names, "quasi-identifier")
    rules = nr.Policy(
        attributes=attributes | {"signs": {"role": "quasi-sensitive", "knowledge": known}},
        require=[{"model": "qs-closeness", "on": "signs", "t": 0.9}],
        method="mondrian",
        dependence={"most": 1.0},
    )
    (found,) = compare(pa.table(columns), rules, among=["mondrian"])
    assert found.terms is not None, found.failure
    assert set(found.terms.queries) == asked
