"""A descriptor of another version may word its prose otherwise, and may hold nothing else there."""

from __future__ import annotations

import pytest

from noren.release.closed import PROSE, _differences


@pytest.mark.parametrize("name", sorted(PROSE))
@pytest.mark.parametrize(
    ("found", "differs"), [("said otherwise", False), ("x" * 900, True), (["a", "list"], True), ({"a": "b"}, True)]
)
def test_prose_of_another_version_is_short_text(name, found, differs):
    told = _differences({name: found}, {name: "said so"}, "", same=False)
    assert told == ([name] if differs else [])
    assert _differences({name: "said otherwise"}, {name: "said so"}, "", same=True) == [name]
