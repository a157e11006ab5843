"""The cell is the value itself, in a column with more values than are ever listed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from noren.schema.domain import MISSING
from noren.statements.batch import Cells, OpenCells
from noren.statements.statement import Judge, Statement


@dataclass(frozen=True, eq=False)
class OpenStatement(Statement):
    """Free text, exact amounts: published as they stand, and never coded."""

    form: ClassVar[str] = "open"
    words: ClassVar[str] = "published exactly"
    is_exact: ClassVar[bool] = True
    is_key: ClassVar[bool] = True
    lists_values: ClassVar[bool] = False

    @property
    def kinds(self) -> None:
        return None

    def likelihood(self, cells: Cells) -> None:
        return None

    def covers(self, cells: Cells, truth: Any) -> NDArray[np.bool_]:
        import pyarrow.compute as pc

        same = pc.equal(self.checked(cells).data.cast("string"), truth.cast("string")).fill_null(False)
        both = pc.and_(self.checked(cells).data.is_null(), truth.is_null())
        return np.asarray(pc.or_(same, both).to_numpy(zero_copy_only=False), bool)

    def position(self, cells: Cells) -> NDArray[np.float64]:
        import polars as pl

        found = pl.from_arrow(self.checked(cells).data)
        assert isinstance(found, pl.Series)
        return found.rank("dense").cast(pl.Float64).fill_null(np.nan).to_numpy()

    def judged_by(self, judge: Judge, evidence: Any) -> Any:
        return judge.judge_open(self, evidence)

    def checked(self, cells: Any) -> OpenCells:
        if not isinstance(cells, OpenCells):
            raise self.disagrees("does not hold open values, as the release says.")
        return cells

    def key(self, cells: Cells) -> Any:
        import polars as pl

        return pl.Series(self.checked(cells).data.cast("string"))

    def label(self, code: Any) -> str:
        return MISSING if code is None else str(code)

    def to_arrow(self, cells: Any) -> Any:
        return cells.data

    def from_arrow(self, column: Any) -> Cells:
        import pyarrow as pa

        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        return OpenCells(column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column)

    def field(self) -> dict[str, Any]:
        return {"name": self.name, "type": "any"}
