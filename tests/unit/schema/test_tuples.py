"""Tuples as texts, and what they have in common."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noren.schema.domain import MISSING, OTHER, Domain
from noren.schema.tuples import Member, TupleDomain, canonical_tuples, link_tuples, tuple_parts, tuple_text

PART = st.text(min_size=1, max_size=6) | st.sampled_from(
    ["a | b", "\\", " | ", "|", "é", "日 本", MISSING, OTHER, " x "]
)


@given(st.lists(PART, min_size=2, max_size=4))
def test_a_text_gives_its_parts_back(parts: list[str]) -> None:
    assert tuple_parts(tuple_text(parts), len(parts)) == tuple(parts)


@given(st.lists(PART, min_size=2, max_size=2), st.lists(PART, min_size=2, max_size=2))
def test_different_tuples_have_different_texts(one: list[str], other: list[str]) -> None:
    assert (tuple_text(one) == tuple_text(other)) == (one == other)


@pytest.mark.parametrize("text", ["a", "a | b | c", "a | b\\", "a|b | c", ""])
def test_another_text_is_no_pair(text: str) -> None:
    with pytest.raises(ValueError, match="tuple"):
        tuple_parts(text, 2)


def test_tuples_are_read_as_their_members_write_them() -> None:
    bins = Domain(("[0, 10)", "[10, 20]"), edges=(0, 10, 20))
    members = [Member("n", Domain(("1", "2", OTHER), "string")), Member("b", bins)]
    texts = ["1 | 3", "7 | 20", f"{MISSING} | 12.5", "2 | [0, 10)"]
    assert canonical_tuples(texts, members) == [
        "1 | [0, 10)",
        f"{OTHER} | [10, 20]",
        f"{MISSING} | [10, 20]",
        "2 | [0, 10)",
    ]


def test_tuples_hang_together_by_any_value_they_share() -> None:
    first, second = np.array([0, 0, 1, 2, 3]), np.array([0, 1, 1, 2, 3])
    assert link_tuples([first, second], 5).tolist() == [0, 0, 0, 1, 2]
    assert link_tuples([second], 5).tolist() == [0, 1, 1, 2, 3]
    assert link_tuples([], 3).tolist() == [0, 1, 2]


def test_members_publish_no_value_that_no_tuple_has() -> None:
    members = (Member("a", Domain(("x", "y", "z"))), Member("b", Domain(("1", "2"), source="policy")))
    domain = TupleDomain(("x | 1", "z | 1"), members=members)
    published = domain.trim_members()
    assert [member.domain.values for member in published.members] == [("x", "z"), ("1", "2")]
    assert published.codes["a"].tolist() == [0, 1]
