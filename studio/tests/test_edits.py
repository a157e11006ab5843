"""Edits of the policy that are more than one value."""

from __future__ import annotations

from typing import Any

import pytest

from noren_studio.edits import at_levels, groups, join, part, set_key


def test_levels_are_fixed_in_the_method_that_was_asked_for() -> None:
    """A vector that was found with people left out holds with them left out alone."""
    asked = {"method": {"name": "incognito", "suppression": 0.05, "levels": {"age": 3}}}
    assert at_levels(asked, {"age": 2}) == [{"name": "incognito", "suppression": 0.05, "levels": {"age": 2}}]
    assert at_levels(asked, None) == [{"name": "incognito", "suppression": 0.05}]
    assert asked["method"]["levels"] == {"age": 3}


def test_levels_leave_the_method_beside_it() -> None:
    both = {"method": [{"name": "decoys", "on": ["ill"]}, {"name": "incognito", "on": ["age"]}]}
    beside = {"name": "decoys", "on": ["ill"]}
    assert at_levels(both, {"age": 2}) == [beside, {"name": "incognito", "on": ["age"], "levels": {"age": 2}}]


def test_levels_take_the_place_of_another_method() -> None:
    for given in ({}, {"method": {"name": "mondrian"}}, {"method": [{"name": "mondrian"}, {"name": "decoys"}]}):
        assert at_levels(given, {"age": 2}) == [{"name": "incognito", "levels": {"age": 2}}]


@pytest.mark.parametrize(
    "written", [["ill", "code"], [["ill", "code"]], {"columns": ["ill", "code"]}, [{"columns": ["ill", "code"]}]]
)
def test_columns_are_parted_and_put_together_again(written: Any) -> None:
    sections = {"together": written}
    assert groups(sections) == [{"columns": ["ill", "code"]}]
    part(sections, ["ill", "code"])
    assert sections == {}
    join(sections, {"columns": ["ill", "code"], "rare": "merge"})
    assert sections == {"together": [{"columns": ["ill", "code"], "rare": "merge"}]}


def test_other_groups_stay() -> None:
    sections: dict[str, Any] = {"together": [["a", "b"], ["c", "d"]]}
    part(sections, ["c", "d"])
    assert sections == {"together": [{"columns": ["a", "b"]}]}


@pytest.mark.parametrize("given", ["who", ["who"]])
def test_a_bound_on_rows_goes_with_the_key_that_it_is_about(given: Any) -> None:
    for key, left in (
        ("who", {"key": "who", "most_rows": 6}),
        ("house", {"key": "house"}),
        (None, {"rows": "independent"}),
    ):
        sections = {"attributes": {"who": "plain", "house": "plain"}, "people": {"key": given, "most_rows": 6}}
        set_key(sections, key)
        assert sections["people"] == left
