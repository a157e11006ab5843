"""Cells in memory come back whole and in order, however many."""

from __future__ import annotations

import numpy as np
import pytest

from noren.release.store import MemoryStore
from noren.statements import CodeCells
from tests.statements import exact_column


@pytest.mark.parametrize("rows", [1, 7, 8, 9, 20, 40])
def test_every_row_comes_once_in_parts_of_a_size(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noren.release.store.MOST_ROWS", 2)
    store = MemoryStore({"a": CodeCells(50, np.arange(rows))})
    parts = [batch["a"].data.tolist() for batch in store.batches([exact_column("a", 50)])]  # type: ignore[attr-defined]
    assert [row for part in parts for row in part] == [*range(rows)]
    assert [len(part) for part in parts[:-1]] == [8] * ((rows - 1) // 8)
