"""Which pairs of columns are looked at, and at how many people: those that are asked for, and with a limit the loud."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import noren as nr
from noren.designs.decoys import DecoyDesign
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.roles import Role
from noren.statements import SetStatement
from noren.workflow import dependence
from noren.workflow.dependence import _Possible, told
from noren.workflow.draft import Draft
from noren.workflow.prepare import prepare
from noren.workflow.settling import decide_plan, draft_plan

N = 600


@pytest.fixture(scope="module")
def draft() -> Draft:
    """Two secrets: the one is told by a copy, the other by nothing."""
    rng = np.random.default_rng(3)
    own, quiet = rng.integers(0, 12, N), rng.integers(0, 6, N)
    table = pl.DataFrame(
        {
            "quiet": [f"q{x}" for x in quiet],
            "own": [f"a{x:02}" for x in own],
            "copy": [f"b{x * 5 % 12:02}" for x in own],
            "noise": [f"c{x}" for x in rng.integers(0, 5, N)],
        }
    )
    policy = nr.Policy(
        attributes={"quiet": "sensitive", "own": "sensitive", "copy": "plain", "noise": "plain"},
        require=[nr.models.FrequencyLDiversity(on=["quiet", "own"], l=3)],
    )
    found = prepare(table, policy)
    return draft_plan(found, decide_plan(found, policy), policy)


def test_as_many_people_are_asked_as_wanted(draft: Draft, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {one.asked for one in told(draft, 50)} == {50}
    assert {one.asked for one in told(draft)} == {dependence.ASKED}
    monkeypatch.setattr(dependence, "ASKED", 80)
    assert {one.asked for one in told(draft)} == {80}
    assert {one.asked for one in told(draft, 90)} == {90}


def test_with_a_limit_only_pairs_are_listed_that_may_exceed_it(draft: Draft) -> None:
    def pairs(above: float | None) -> list[tuple[str, str]]:
        return [(one.protected, one.by) for one in told(draft, above=above)]

    every = {(own, by) for own in ("quiet", "own") for by in ("quiet", "own", "copy", "noise") if own != by}
    assert set(pairs(None)) == every
    assert len(pairs(None)) == len(every)
    assert pairs(None)[0] == ("own", "copy"), "the most telling first"
    assert pairs(0.5) == [("own", "copy")]
    assert told(draft, above=0.5)[0].share == 1.0


def test_pairs_that_take_too_many_products_are_asked_of_fewer_people(
    draft: Draft, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sets of three values: beside an exact cell three products a person, beside another set nine."""
    monkeypatch.setattr(dependence, "PRODUCTS", 900)
    monkeypatch.setattr(dependence, "LEAST", 10)
    found = {(one.protected, one.by): one.asked for one in told(draft)}
    assert (found["own", "copy"], found["own", "quiet"]) == (300, 100)
    monkeypatch.setattr(dependence, "LEAST", 200)
    found = {(one.protected, one.by): one.asked for one in told(draft)}
    assert (found["own", "copy"], found["own", "quiet"]) == (300, 200)


def test_cells_list_the_values_they_leave_possible() -> None:
    column = Column(role=Role.SENSITIVE).over("ill", Domain(tuple("abcd")))
    statement = SetStatement(column, DecoyDesign(d=4, eta=2))
    cells = statement.from_arrow(pa.array([["a", "c"], ["b", "d"], ["a", "c"]]))
    found = _Possible.of(statement, cells)
    assert [sorted(row.tolist()) for row in found.value] == [[0, 2], [1, 3], [0, 2]]
    assert (found.weight > 0).all()
    assert len(found) == 3
    assert found.at(np.array([0, 0, 2])).tolist() == [found.weight[0, 0], found.floor, found.weight[0, 0]]


def test_who_has_nothing_that_speaks_for_a_value_is_sure_of_none() -> None:
    belief = np.array([[0.0, 0.0], [1e-9, 0.0]])
    assert dependence._certain(belief, np.array([[0, 1], [0, 1]]), np.array([0, 0])) == 0.5
