"""The cell is the value itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from noren.schema.domain import MISSING
from noren.statements.batch import Cells, CodeCells
from noren.statements.statement import Judge, Likelihood, Statement
from noren.statements.texts import arrow_values, codes_in


def codes_of(statement: Statement, cells: Any, size: int, what: str) -> NDArray[np.int64]:
    """The codes of coded cells, if they are what the statement says."""
    if not isinstance(cells, CodeCells) or cells.d != size:
        raise statement.disagrees(f"does not hold what the release says ({size} {what}).")
    codes = cells.data.astype(np.int64)
    if len(codes) and (codes.min() < 0 or codes.max() >= size):
        raise statement.disagrees(f"holds a code outside its {size} {what}.")
    return codes


@dataclass(frozen=True, eq=False)
class CodedStatement(Statement):
    """A cell names one value of the column's domain."""

    @property
    def kinds(self) -> int:
        return self.d

    def checked(self, cells: Any) -> NDArray[np.int64]:
        return codes_of(self, cells, self.d, "values")

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
    """It is this."""

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
