"""A comparison as a table: every loss and every cost of a candidate by its name, nothing where it was not measured."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from noren.methods import Anatomy, Mondrian
from noren.pipeline.compare import Candidate
from noren.pipeline.comparison import Comparison
from noren.pipeline.risk import nearness


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


@pytest.mark.parametrize(("kind", "d", "code"), [("integer", 20, True), ("integer", 21, False), ("number", 20, False)])
def test_few_whole_numbers_are_codes(kind, d, code):
    assert nearness._is_code(SimpleNamespace(kind=kind, d=d)) == code  # type: ignore[arg-type]
