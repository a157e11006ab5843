"""What a method sees of a table, and what a table under other requirements keeps."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import noren as nr
from noren.engines import Table
from noren.engines.finding import _beside
from noren.engines.plan import TermSearch
from noren.engines.shuffle import bucket_numbers
from noren.engines.table import _kind
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.roles import Role
from noren.secret import Keystream
from noren.workflow.prepare import prepare

GRADES = ["a", "b", "c", "d", "e"]


def table(**closeness: Any) -> Table:
    frame = pl.DataFrame({"town": ["Ulm", "Bonn"] * 30, "grade": ["a", "c", "e"] * 20})
    policy = nr.Policy(
        attributes={
            "town": "quasi-identifier",
            "grade": {"role": "sensitive", "values": GRADES, "distance": "ordinal"},
        },
        require=[{"model": "t-closeness", "on": "grade", "t": 0.4} | closeness],
        method="mondrian",
    )
    return prepare(frame, policy)


@pytest.mark.parametrize(("distance", "seen"), [("equal", 3), ("ordered", 5)])
def test_values_that_nobody_has_keep_their_place_where_the_order_counts(distance: str, seen: int) -> None:
    assert table(distance=distance).records.columns["grade"].d == seen


def test_a_table_under_other_requirements_is_not_read_again() -> None:
    first = table()
    asked = [nr.models.KAnonymity(k=3)]
    assert "records" not in vars(first.asking(asked)), "nothing was read yet"
    records = first.records
    assert first.asking(asked).records is records
    assert first.asking(first.requirements) is first


@pytest.mark.parametrize("n", [1, 2, 7, 100])
def test_every_row_has_a_bucket(n: int) -> None:
    found = bucket_numbers(n, 4, Keystream())
    assert len(found) == n
    assert set(found.tolist()) <= set(range(4))


@pytest.mark.parametrize(
    ("optimal", "bound", "ends"),
    [
        ((True, True), (0.2, 0.4), "2 of these suppressions are proven to be the cheapest"),
        ((True, False), (0.2, 0.3), "their total cost exceeds the minimum by at most 20.0%"),
        ((False, False), (0.0, 0.0), "it is not known how much the others exceed the minimum"),
    ],
)
def test_the_note_of_a_search_says_how_far_from_the_least_it_may_be(optimal, bound, ends) -> None:
    search = TermSearch(
        ("signs",), "best-first", np.array([3, 4]), np.array([0.2, 0.4]), np.array(bound), np.array(optimal),
        np.array([True, True]), 20, 5, 100, 0.1,
    )  # fmt: skip
    assert search.note.startswith("signs: 2 of 2 groups have suppressed terms, 5 of 20 in all; ")
    assert search.note.endswith(ends)


@pytest.mark.parametrize(
    ("values", "left", "kind"),
    [
        (("1", "2"), ("1",), "string"),
        (("1", "2", "(missing)"), ("1", "2"), "integer"),
        (("1", "2", "(other)"), ("1", "2"), "integer"),
        (("1", "2", "(missing)"), ("1", "(missing)"), "string"),
        (("a", "(missing)"), ("a",), "string"),
    ],
)
def test_numbers_are_numbers_again_only_where_what_made_them_texts_is_gone(
    values: tuple[str, ...], left: tuple[str, ...], kind: str
) -> None:
    assert _kind(Column(role=Role.PLAIN).over("x", Domain(values)), left) == kind


def test_no_columns_beside_each_other_are_lines_of_nothing() -> None:
    assert _beside([], 3).shape == (3, 0)
    assert _beside([np.array([1, 2]), np.array([3, 4])], 2).tolist() == [[1, 3], [2, 4]]
