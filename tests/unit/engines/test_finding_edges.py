"""People found by exact values, and records taken by chance from tables that are large beside what is taken."""

from __future__ import annotations

import numpy as np
import pytest

from noren.engines.finding import Finder, exact_nodes
from noren.engines.profile import ValueCounts
from tests.unit.sources.test_reservoir import sampled


def test_people_are_found_by_the_exact_values_of_several_columns() -> None:
    """Three records; of four people the first two have one, the third has another's town, the last is unknown."""
    town, grade = np.array([2, 0, 2]), np.array([1, 0, 0])
    finder = Finder([exact_nodes(3), exact_nodes(2)], [town, grade], 3)
    who, group = finder.pairs([np.array([2, 0, 0, -1]), np.array([1, 0, 1, 0])], 4)
    kind = finder.class_of
    assert [*zip(who.tolist(), group.tolist(), strict=True)] == [(0, kind[0]), (1, kind[1])]
    (found,) = finder.candidates([np.array([2, 0, 0, -1]), np.array([1, 0, 1, 0])], 4)
    own = {
        person: found.order[found.bounds[at] : found.bounds[at + 1]].tolist()
        for person, at in zip(found.people.tolist(), found.of.tolist(), strict=True)
    }
    assert own == {0: [0], 1: [1]}


@pytest.mark.parametrize(("n", "most", "size"), [(5000, 1000, 700), (3000, 1400, 3000)])
def test_no_more_records_are_taken_than_wanted_however_large_the_table_is(n: int, most: int, size: int) -> None:
    found = sampled(n, most, size)
    assert found.rows == most
    assert len(set(found.numbers(0, most).tolist())) == most


def test_what_was_taken_says_its_columns() -> None:
    assert sampled().columns == sampled(size=60).columns == ("text", "number")
    assert sampled(keep=np.zeros(60, bool)).columns == ()


def test_a_column_of_which_nothing_was_seen_misses_nothing() -> None:
    none = ValueCounts("x")
    assert (none.counts, none.missing, none.outside, none.is_open, none.not_numeric) == ({}, 0, 0, False, False)
    none.add({"a": 2})
    assert none.counts == {"a": 2}
