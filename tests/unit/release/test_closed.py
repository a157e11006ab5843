"""Descriptors are compared piece by piece, whatever stands in the place of a piece."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from noren.release.closed import _differences
from noren.release.store import CsvStore, store_for


@pytest.mark.parametrize("found", [5, None, "text", ["a"], {"b": 1}, {"a": 2}, {"a": 1.0}, {"a": True}])
def test_another_kind_of_thing_is_a_difference(found: Any) -> None:
    assert _differences(found, {"a": 1}, "here", same=True)
    assert _differences({"x": found}, {"x": {"a": 1}}, "", same=True)
    assert _differences({"a": 1}, found, "here", same=True)
    assert not _differences({"a": 1}, {"a": 1}, "here", same=True)


def test_an_earlier_format_may_lack_what_came_later_and_words_nothing_otherwise() -> None:
    assert not _differences({"a": 1}, {"a": 1, "later": 2}, "", same=False)
    assert _differences({"a": 1}, {"a": 1, "later": 2}, "", same=True) == ["later"]
    for name in ("title", "description"):
        assert _differences({name: "said otherwise"}, {name: "said so"}, "", same=False) == [name]


def test_what_was_written_is_read_with_its_apostrophes_taken_off(tmp_path: Path) -> None:
    store = store_for(tmp_path / "data.csv")
    assert isinstance(store, CsvStore)
    assert store.escaped
