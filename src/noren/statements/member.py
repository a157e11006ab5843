"""The cell is one member of a person's set, in a release of shuffled rows without set numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from noren.statements.batch import Cells, CodeCells
from noren.statements.exact import codes_of
from noren.statements.set import DrawnStatement
from noren.statements.statement import Judge, Likelihood
from noren.statements.texts import arrow_values, codes_in


@dataclass(frozen=True, eq=False)
class MemberStatement(DrawnStatement):
    """One of this person's eta possible values; which rows belong to one person is not said."""

    form: ClassVar[str] = "member"
    words: ClassVar[str] = "published as shuffled members"

    @property
    def description(self) -> str:
        return f"shuffled rows, one per value of a set of {self.drawn.eta} out of {self.d} values"

    @property
    def rows_per_record(self) -> int:
        return self.drawn.eta

    @property
    def kinds(self) -> int:
        return self.d

    def likelihood(self, cells: Cells) -> Likelihood:
        codes, d = self.checked(cells), self.d
        chances = self.drawn.inclusion_matrix().T[codes] / self.drawn.eta
        return Likelihood(np.arange(len(codes) + 1) * d, np.tile(np.arange(d), len(codes)), chances.ravel())

    def spread(self, cells: Cells) -> NDArray[np.int64]:
        """The values of the set that a row is a member of."""
        return np.full(len(cells), self.drawn.eta)

    def covers(self, cells: Cells, truth: Any) -> NDArray[np.bool_]:
        return self.drawn.inclusion_matrix()[truth, self.checked(cells)] > 0

    def tally(self, cells: Cells) -> NDArray[np.int64]:
        return np.bincount(self.checked(cells), minlength=self.d).astype(np.int64)

    def judged_by(self, judge: Judge, evidence: Any) -> Any:
        return judge.judge_members(self, evidence)

    def checked(self, cells: Any) -> NDArray[np.int64]:
        return codes_of(self, cells, self.d, "members")

    def to_arrow(self, cells: Any) -> Any:
        import pyarrow as pa

        return arrow_values(self.domain).take(pa.array(np.asarray(cells.data)))

    def from_arrow(self, column: Any) -> Cells:
        return CodeCells(self.d, codes_in(self.name, self.domain, column))

    @property
    def texts_path(self) -> str | None:
        return self.name if self.domain.kind == "string" else None

    def field(self) -> dict[str, Any]:
        return {"name": self.name, "type": self.domain.kind}
