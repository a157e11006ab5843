"""General values over texts that nobody declared."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from noren.pipeline.shown import _between, line_kind, shown
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.nodes import Nodes
from noren.schema.roles import Role
from noren.table import Recode


def test_a_general_value_over_one_text_hides_it_too() -> None:
    column = Column(role=Role.QUASI_IDENTIFIER).met("name", Domain(("anna", "bert", "carl")))
    nodes = Nodes.from_runs(3, ["a***", "*"], [[(0, 1)], [(0, 3)]])
    found = shown(column, Recode(nodes, np.array([0, 0, 1]), "subtrees"), np.array([0, 0, 1]), np.ones(3, bool))
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
