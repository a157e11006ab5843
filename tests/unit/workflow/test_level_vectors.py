"""Level vectors: how many are listed, which share may be left out, and a table of one."""

from __future__ import annotations

from typing import Any

import polars as pl

import noren as nr
from noren.methods.incognito.search import LevelVector
from noren.workflow.compare import LevelVectors, find_levels, line

PEOPLE = pl.DataFrame({"age": [*range(20, 59), 90], "size": [i % 20 for i in range(40)], "ill": ["flu", "cold"] * 20})
"""Nobody is near the one who is 90."""


def rules(**method: Any) -> nr.Policy:
    widths = {"role": "quasi-identifier", "hierarchy": {"widths": [5, 10, 20, 40]}}
    return nr.Policy(
        attributes={"age": widths, "size": widths, "ill": "plain"},
        require=[nr.models.KAnonymity(k=2)],
        method={"name": "incognito", **method},
    )


def test_ten_are_listed_unless_others_are_asked_for() -> None:
    """Age at its root, or with the one left out; six levels of size each."""
    assert len(find_levels(PEOPLE, rules(), suppression=0.5)) == 10
    assert len(find_levels(PEOPLE, rules(), count=3, suppression=0.5)) == 3


def test_who_may_be_left_out_follows_the_method_or_what_is_asked() -> None:
    assert {one.dropped for one in find_levels(PEOPLE, rules(), count=40)} == {0}
    assert 1 in {one.dropped for one in find_levels(PEOPLE, rules(suppression=0.1), count=40)}
    assert 1 in {one.dropped for one in find_levels(PEOPLE, rules(), count=40, suppression=0.1)}
    assert {one.dropped for one in find_levels(PEOPLE, rules(suppression=0.1), count=40, suppression=0.0)} == {0}


def test_one_vector_and_none_make_a_table_too() -> None:
    vector = LevelVector({"age": 2, "size": 1}, {"age": 5, "size": 4}, 0.25, 4, 1)
    one = LevelVectors((vector,))
    assert one.frame.to_dicts() == [{"age": 2, "size": 1, "loss": 0.25, "classes": 4, "dropped": 1}]
    assert line(vector) == "levels = { age = 2, size = 1 }"
    assert LevelVectors(()).frame.columns == ["loss", "classes", "dropped"]
