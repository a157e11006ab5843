"""A comparison as a table: every loss and every cost of a candidate by its name, nothing where it was not measured."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from noren.audit.risk import raw as nearness
from noren.methods import Anatomy, Mondrian
from noren.workflow.comparison import Candidate, Comparison


def test_losses_and_costs_stand_beside_the_figures():
    made = Comparison(
        (
            Candidate("mondrian", (Mondrian(),), 1.0, losses={"ncp": 0.25}, setting={"k": 5}),
            Candidate("anatomy", (Anatomy(),), 2.0, classification={"accuracy": 0.5}),
            Candidate("hilbert", (), 3.0, failure="l = 9 is out of reach"),
        )
    )
    lines: list[dict[str, Any]] = made.frame.to_dicts()
    assert [line["ncp"] for line in lines] == [0.25, None, None]
    assert [line["accuracy"] for line in lines] == [None, 0.5, None]
    assert [line["setting"] for line in lines] == ["k = 5", None, None]
    assert [line["holds"] for line in lines] == [True, True, False]


def test_the_frontier_and_the_choice_are_of_those_that_hold() -> None:
    """Of three that hold none beats another; of a grid the bend is chosen, else the least error."""

    def one(title: str, risk: float, error: float, **more: Any) -> Candidate:
        return Candidate(title, (Mondrian(),), 1.0, belief=risk, query_loss=error, **more)

    terms: Any = SimpleNamespace()
    plain = [one("a", 0.2, 3.0), one("b", 0.3, 1.0), one("d", 0.9, 0.9)]
    others = [one("failed", 0.1, 0.1, failure="k is out of reach"), one("of terms", 0.0, 0.0, terms=terms)]
    assert [found.title for found in Comparison((*plain, *others)).frontier] == ["a", "b", "d"]
    both = one("both", 0.0, 0.0, terms=terms, failure="out of reach")
    assert Comparison((both,)).frontier == []
    made = Comparison((*plain, others[0]))
    assert made.chosen is made.best is plain[2]
    swept = Comparison(tuple(replace(found, setting={"k": 5}) for found in plain))
    assert swept.chosen is not None
    assert swept.chosen.title == "b"
    assert Comparison(()).chosen is None
    nothing = Comparison((others[0],))
    assert (nothing.best, "best" in repr(nothing)) == (None, False)
    assert repr(made).startswith("<Comparison: 3 of 4 candidates hold; best d, query error 0.900")


@pytest.mark.parametrize(("kind", "d", "code"), [("integer", 20, True), ("integer", 21, False), ("number", 20, False)])
def test_few_whole_numbers_are_codes(kind, d, code):
    assert nearness._is_code(SimpleNamespace(kind=kind, d=d)) == code  # type: ignore[arg-type]
