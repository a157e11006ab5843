"""Some of a table's records: which are taken, and that they are counted among those that lack nothing."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from noren.sources.source import open_source
from noren.workflow import dependence as module
from noren.workflow.dependence import PickedSource, picked

TABLE = pl.DataFrame({"a": list("abcdefghij"), "b": [None if i == 3 else "x" for i in range(10)]})
"""Without d, which lacks something: abc, efg, hij in batches of three."""


@pytest.mark.parametrize(
    ("chosen", "rows"),
    [([0, 3, 4, 8], "aefj"), ([], ""), ([*range(9)], "abcefghij"), ([2], "c"), ([0, 1, 2], "abc"), ([8], "j")],
)
@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_records_are_counted_among_those_that_are_kept(
    chosen: list[int], rows: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noren.sources.arrow.BATCH_ROWS", at_once)
    source = PickedSource(open_source(TABLE), ["b"], np.array(chosen, np.int64))
    assert source.rows == len(rows)
    found = [cell for batch in source.batches(["a"]) for cell in batch.column("a").to_pylist()]
    assert "".join(found) == rows
    assert source.numbers(1, 2).tolist() == chosen[1:3]


@pytest.mark.parametrize("at_once", [1, 2, 7])
def test_whoever_is_published_can_be_taken_however_many_are_looked_at(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AT_ONCE", at_once)
    keep = np.array([True, False, True, True, False, True])
    assert picked(keep, 1.0, np.random.default_rng(0)).tolist() == [0, 2, 3, 5]
    taken = {one for seed in range(40) for one in picked(keep, 0.5, np.random.default_rng(seed)).tolist()}
    assert taken == {0, 2, 3, 5}
