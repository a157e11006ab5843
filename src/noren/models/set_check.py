"""The checks of models that ask every published set for enough values, and of suppressed people, whose set is all."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from noren.models.base import Check, Model
from noren.models.verdict import Verdict
from noren.statements import CellBatch, Statement


class SetCheck(Check):
    """Counts something in every published set, keeps the smallest count and how many records fall short."""

    def __init__(self, model: Model, statement: Statement, required: float, means: str) -> None:
        super().__init__(statement.name)
        self.model = model
        self.statement = statement
        self.required = required
        self.means = means
        self.smallest: int | None = None
        self.records = 0
        self.breaches = 0

    def keep_least(self, size: int | None) -> None:
        """The smallest count of any set so far."""
        if size is not None:
            self.smallest = size if self.smallest is None else min(self.smallest, size)

    def merge(self, other: SetCheck) -> None:
        self.records += other.records
        self.breaches += other.breaches
        self.keep_least(other.smallest)

    def verdict(self) -> Verdict:
        achieved = self.smallest or 0
        return Verdict(
            model=self.model.model,
            column=self.column,
            required=self.required,
            achieved=achieved,
            holds=self.records > 0 and self.breaches == 0,
            basis="the release alone",
            records=self.records,
            breaches=self.breaches,
            statement=self.means.format(achieved=achieved),
        )


class SetSizeCheck(SetCheck):
    """Every published set holds enough distinct values of the domain.

    In the un-aggregated form (the product of a record's sets) a class for column j takes, from every record that
    falls into it, one row per value of that record's set. A value therefore comes at most once per record, and its
    share is at most records / sum of set sizes <= 1 / (smallest set): Theorem 2 for sets of any sizes. The
    smallest set is thus a lower bound of what each class achieves, and exact for a class of one record.
    """

    def observe(self, batch: CellBatch) -> None:
        sets, times = self.statement.checked(batch[self.column]).weighed()
        sizes = self.statement.different(sets)
        if not len(sizes):
            return
        self.records += int(times.sum())
        self.breaches += int(times[sizes < self.required - 1e-9].sum())
        self.keep_least(int(sizes.min()))


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
