"""Cells that are the value itself: of a listed domain, or open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from noren.schema.domain import MISSING
from noren.statements.batch import Cells, CodeCells, OpenCells
from noren.statements.statement import Judge, Likelihood, Statement
from noren.statements.texts import arrow_values, codes_in


def codes_of(statement: Statement, cells: Any, size: int, what: str) -> NDArray[np.int64]:
    """Return the codes of coded cells; raise if they are not as the statement says."""
    if not isinstance(cells, CodeCells) or cells.d != size:
        raise statement.disagrees(f"does not hold the declared {size} {what}.")
    codes = cells.data.astype(np.int64)
    if len(codes) and (codes.min() < 0 or codes.max() >= size):
        raise statement.disagrees(f"holds a code outside its {size} {what}.")
    return codes


@dataclass(frozen=True, eq=False)
class CodedStatement(Statement):
    """A statement whose cell names one value of the column's domain."""

    @property
    def kinds(self) -> int:
        return self.d

    def checked(self, cells: Any) -> NDArray[np.int64]:
        return codes_of(self, cells, self.d, "values")

    def tally(self, cells: Cells) -> NDArray[np.int64]:
        return np.bincount(self.checked(cells), minlength=self.d).astype(np.int64)

    def label(self, code: Any) -> str:
        return self.domain.values[code] if code < self.d else f"value {code}"

    def to_arrow(self, cells: Any) -> Any:
        import pyarrow as pa

        data, domain = np.asarray(cells.data), self.domain
        hidden = data == domain.index[MISSING] if domain.kind == "string" and domain.has_missing else None
        return arrow_values(domain).take(pa.array(data, mask=hidden))

    def from_arrow(self, column: Any) -> Cells:
        return CodeCells(self.d, codes_in(self.name, self.domain, column))

    @property
    def texts_path(self) -> str | None:
        return self.name if self.domain.kind == "string" else None

    def field(self) -> dict[str, Any]:
        return {"name": self.name, "type": self.domain.kind}


@dataclass(frozen=True, eq=False)
class ExactStatement(CodedStatement):
    """Each cell is the true value."""

    form: ClassVar[str] = "exact"
    words: ClassVar[str] = "published exactly"
    is_exact: ClassVar[bool] = True
    is_key: ClassVar[bool] = True

    def likelihood(self, cells: Cells) -> Likelihood:
        codes = self.checked(cells)
        return Likelihood(np.arange(len(codes) + 1), codes, np.ones(len(codes)))

    def covers(self, cells: Cells, truth: Any) -> NDArray[np.bool_]:
        return np.asarray(self.checked(cells) == truth)

    def shares(self, tally: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(tally / max(1, int(tally.sum())))

    def judged_by(self, judge: Judge, evidence: Any) -> Any:
        return judge.judge_classes(self, evidence)

    def key(self, cells: Cells) -> NDArray[np.int64]:
        return self.checked(cells)


@dataclass(frozen=True, eq=False)
class OpenStatement(Statement):
    """Free text and exact amounts, published unchanged and never coded."""

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
            raise self.disagrees("does not hold open values, which the release declares.")
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
