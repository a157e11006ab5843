"""Models of sets, asked about people who are left out: of each of them the values of all stay possible."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from noren.models.base import Check, Model
from noren.models.verdict import Verdict
from noren.statements import CellBatch, Statement


class ValuesCheck(Check):
    """Gathers the different values of one class and counts something in them."""

    def __init__(
        self,
        model: Model,
        statement: Statement,
        count: Callable[[NDArray[np.int64]], int],
        required: float,
        means: str,
    ) -> None:
        super().__init__(statement.name)
        self.model = model
        self.statement = statement
        self.count = count
        self.required = required
        self.means = means
        self.seen = np.zeros(statement.d, np.int64)

    def observe(self, batch: CellBatch) -> None:
        self.seen += np.bincount(self.statement.checked(batch[self.column]), minlength=len(self.seen))

    def merge(self, other: ValuesCheck) -> None:
        self.seen += other.seen

    def verdict(self) -> Verdict:
        records, achieved = int(self.seen.sum()), self.count(np.flatnonzero(self.seen))
        holds = records > 0 and achieved >= self.required
        return Verdict(
            model=self.model.model,
            column=self.column,
            required=self.required,
            achieved=achieved,
            holds=holds,
            basis="the original",
            records=records,
            breaches=0 if holds else records,
            statement=self.means.format(achieved=achieved),
        )
