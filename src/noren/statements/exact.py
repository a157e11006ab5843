"""Cells that are the value itself: of a listed domain, or open."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from noren.schema.domain import MISSING
from noren.statements.batch import Cells, CodeCells, OpenCells
from noren.statements.statement import Judge, Likelihood, Statement
from noren.statements.texts import arrow_values, codes_in


@dataclass(frozen=True, eq=False)
class NumberedStatement(Statement):
    """A statement whose cells are numbers below `kinds`: of values, of generalised values, of groups, of means."""

    numbers_of: ClassVar[str] = "values"
    """What the numbers stand for."""

    @property
    @abstractmethod
    def kinds(self) -> int: ...

    def check_cells(self, cells: Any) -> NDArray[np.int64]:
        size = self.kinds
        if not isinstance(cells, CodeCells) or cells.d != size:
            raise self.disagrees(f"does not hold the declared {size} {self.numbers_of}.")
        codes = cells.data.astype(np.int64)
        if len(codes) and (codes.min() < 0 or codes.max() >= size):
            raise self.disagrees(f"holds a code outside its {size} {self.numbers_of}.")
        return codes

    def tally(self, cells: Cells) -> NDArray[np.int64]:
        """Return how many cells have every number."""
        return np.bincount(self.check_cells(cells), minlength=self.kinds).astype(np.int64)

    def possible_counts(self, tally: NDArray[np.int64]) -> NDArray[np.int64]:
        found = self.possible(CodeCells(self.kinds, np.arange(self.kinds)))
        assert found is not None
        return np.bincount(found[1], np.repeat(tally, np.diff(found[0])), self.d).astype(np.int64)

    def key(self, cells: Cells) -> NDArray[np.int64]:
        if not (self.is_key or self.is_class):
            raise self.unlike()
        return self.check_cells(cells)


@dataclass(frozen=True, eq=False)
class CodedStatement(NumberedStatement):
    """A statement whose cell names one value of the column's domain."""

    @property
    def kinds(self) -> int:
        return self.d

    def possible_counts(self, tally: NDArray[np.int64]) -> NDArray[np.int64]:
        return tally

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
        codes = self.check_cells(cells)
        return Likelihood(np.arange(len(codes) + 1), codes, np.ones(len(codes)))

    def covers(self, cells: Cells, truth: Any) -> NDArray[np.bool_]:
        return np.asarray(self.check_cells(cells) == truth)

    def shares(self, tally: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(tally / max(1, int(tally.sum())))

    def judged_by(self, judge: Judge, evidence: Any) -> Any:
        return judge.judge_classes(self, evidence)


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

        same = pc.equal(self.check_cells(cells).data.cast("string"), truth.cast("string")).fill_null(False)
        both = pc.and_(self.check_cells(cells).data.is_null(), truth.is_null())
        return np.asarray(pc.or_(same, both).to_numpy(zero_copy_only=False), bool)

    def position(self, cells: Cells) -> NDArray[np.float64]:
        import polars as pl

        found = pl.from_arrow(self.check_cells(cells).data)
        assert isinstance(found, pl.Series)
        return found.rank("dense").cast(pl.Float64).fill_null(np.nan).to_numpy()

    def judged_by(self, judge: Judge, evidence: Any) -> Any:
        return judge.judge_open(self, evidence)

    def check_cells(self, cells: Any) -> OpenCells:
        if not isinstance(cells, OpenCells):
            raise self.disagrees("does not hold open values, which the release declares.")
        return cells

    def key(self, cells: Cells) -> Any:
        import polars as pl

        return pl.Series(self.check_cells(cells).data.cast("string"))

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
