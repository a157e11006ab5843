"""People found by exact values, and columns of which nothing was seen."""

from __future__ import annotations

import numpy as np

from noren.engines.engine import ValueCounts
from noren.engines.finding import Finder, exact_nodes


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


def test_a_column_of_which_nothing_was_seen_misses_nothing() -> None:
    none = ValueCounts("x")
    assert (none.counts, none.missing, none.outside, none.is_open, none.not_numeric) == ({}, 0, 0, False, False)
    none.add({"a": 2})
    assert none.counts == {"a": 2}
