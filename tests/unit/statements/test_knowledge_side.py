"""The knowledge table beside a release: two columns always, weights and priors where the holder gave them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from noren.schema.knowledge import Knowledge
from noren.statements import TermsStatement
from tests.statements import term_column

PAIRS = [("flu", "cough"), ("flu", "fever"), ("cold", "cough"), ("well", "")]
WEIGHTS = {"flu": 1.0, "cold": 3.0, "well": 2.0}
PRIORS = {"flu": 0.2, "cold": 0.3, "well": 0.5}


def statement(weights: dict[str, float] | None = None, priors: dict[str, float] | None = None) -> TermsStatement:
    knowledge = Knowledge.from_pairs(PAIRS, weights=weights, priors=priors)
    return term_column("signs", knowledge.terms, knowledge)


def listed(given: TermsStatement) -> dict[str, list[Any]]:
    return {name: cells.to_pylist() for name, cells in given.side_columns().items()}


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("priors", [None, PRIORS])
def test_what_was_given_is_published_and_nothing_else(weights, priors):
    given = statement(weights, priors)
    labels = ["flu", "flu", "cold", "well"]
    wanted: dict[str, list[Any]] = {"label": labels, "term": ["cough", "fever", "cough", None]}
    wanted |= {"weight": [weights[label] for label in labels]} if weights else {}
    wanted |= {"prior": [priors[label] for label in labels]} if priors else {}
    assert listed(given) == wanted
    kinds = {field["name"]: field["type"] for field in given.side_fields()}
    assert kinds == {name: "string" if name in ("label", "term") else "number" for name in wanted}
    again = given.read_side(given.side_columns())
    assert again.labels == ("flu", "cold", "well")
    for found, numbers in ((again.weights, weights), (again.priors, priors)):
        assert (found is None) == (numbers is None)
        assert numbers is None or found is not None
        assert numbers is None or np.array_equal(found, [numbers[label] for label in again.labels])


@pytest.mark.parametrize(
    "change",
    [
        {"label": None},
        {"term": None},
        {"label": ["flu", "flu", "cold", None]},
        {"weight": [1.0, 2.0, 3.0, 2.0]},
        {"prior": [0.2, 0.1, 0.3, 0.5]},
        {"note": [1.0, 1.0, 1.0, 1.0]},
    ],
    ids=["no labels", "no terms", "a label missing", "two weights of a label", "two priors of a label", "more columns"],
)
def test_other_tables_are_no_knowledge(change):
    given = statement(WEIGHTS, PRIORS)
    columns = {name: cells for name, cells in (listed(given) | change).items() if cells is not None}
    with pytest.raises(ValueError, match=r"knowledge table|two numbers"):
        given.read_side({name: pa.array(cells) for name, cells in columns.items()})


@pytest.mark.parametrize(("number", "holds"), [(0, False), (1, True), (1000, True), (1001, False), (True, False)])
def test_the_number_of_a_knowledge_table(number, holds):
    column = statement().column

    def parsed() -> Any:
        return TermsStatement.parse(column, {"knowledge": number}, lambda _: None)

    if holds:
        assert parsed().side == f"knowledge-{number}"
    else:
        with pytest.raises(ValueError, match="numbers from 1 on"):
            parsed()
