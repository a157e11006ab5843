"""Cells of a release in a base, without a server: what numbers mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from noren.errors import ReleaseError
from noren.release.database.store import DatabaseStore
from noren.schema.column import Column
from noren.schema.domain import Domain
from noren.schema.roles import Role
from noren.statements import CodeCells, ExactStatement


class Held(DatabaseStore):
    """A store whose numbers stand for two values, the second first."""

    def __init__(self) -> None:
        self._lookups = {"ill": "ill_values"}

    def _lookup(self, column: Any) -> Any:
        return CodeCells(2, np.array([1, 0], np.uint8))


@pytest.mark.parametrize("ids", [[0, 2], [-1, 0], [None, 1], [5, 5]])
def test_a_number_without_a_meaning_is_refused(ids: list[Any]) -> None:
    statement = ExactStatement(Column(role=Role.PLAIN).over("ill", Domain(("flu", "cold"))))
    good = Held()._cells(pa.record_batch({"ill": pa.array([0, 1, 1], pa.int32())}), [statement])
    assert good["ill"].data.tolist() == [1, 0, 0]  # type: ignore[attr-defined]
    with pytest.raises(ReleaseError, match="a number without a meaning"):
        Held()._cells(pa.record_batch({"ill": pa.array(ids, pa.int32())}), [statement])
