"""The cell is one value, and chance may have put it in the place of another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from noren.schema.column import Column
from noren.statements.batch import Cells
from noren.statements.exact import CodedStatement
from noren.statements.set import DrawnStatement
from noren.statements.statement import Judge, Likelihood, ReadDesign, Statement


@dataclass(frozen=True, eq=False)
class ChangedStatement(CodedStatement, DrawnStatement):
    """Perhaps this: a published design says with which probability each true value is published as each other."""

    form: ClassVar[str] = "changed"
    words: ClassVar[str] = "published with some values changed"

    @classmethod
    def parse(cls, column: Column, fields: Mapping[str, Any], design: ReadDesign) -> Statement:
        made = super().parse(column, fields, design)
        if made.design is None or made.design.eta != 1:
            raise ValueError("the design does not publish single values")
        return made

    def likelihood(self, cells: Cells) -> Likelihood:
        """The published value by its weight, every other by the floor; up to a factor for each cell."""
        codes = self.checked(cells)
        weights = self.drawn.member_weights(codes[:, None]).ravel()
        return Likelihood(np.arange(len(codes) + 1), codes, weights, self.drawn.floor)

    def covers(self, cells: Cells, truth: Any) -> NDArray[np.bool_]:
        return np.ones(len(self.checked(cells)), bool) if self.drawn.floor > 0 else self.checked(cells) == truth

    def tally(self, cells: Cells) -> NDArray[np.int64]:
        return np.bincount(self.checked(cells), minlength=self.d).astype(np.int64)

    def judged_by(self, judge: Judge, evidence: Any) -> Any:
        return judge.judge_changed(self, evidence)

    def field(self) -> dict[str, Any]:
        text = "Some values were changed at random; the manifest tells with which probability."
        return super().field() | {"description": text}
