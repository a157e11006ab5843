"""Models about classes of records, and their common check.

A model says for every class one figure and whether the class satisfies it; the check gathers the classes, keeps the
worst figure and counts the records of classes that fail.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from noren.models.base import Accumulator, Check, Evidence, Model, Overall
from noren.models.classes import Classes, ClassFindings, worst
from noren.models.histograms import ClassTable, Histograms, PeopleTable
from noren.models.verdict import Verdict
from noren.statements import CellBatch, Statement

TOLERANCE = 1e-9
OF_ROWS = "rows were counted instead of people, because the release does not show whose rows they are"

Judged = tuple[NDArray, NDArray[np.bool_]]
"""One figure per class, and whether each class satisfies the model."""


class ClassModel(Model):
    """A requirement on the values of a sensitive column in every class of records."""

    coarsening_preserves: ClassVar[bool] = True
    counts_holders: ClassVar[bool] = False
    """Where people have several rows: whether a value counts for all who have it, or by the shares of their rows."""
    judges_rows: ClassVar[bool] = True
    """Where people have several rows: whether the rows, which every recipient can count, must satisfy it, too."""

    @abstractmethod
    def judge_histograms(self, part: Histograms, column: Statement, overall: NDArray[np.float64]) -> Judged:
        """Measure some classes. `overall` is the distribution of the whole release, for models that compare with it."""

    @abstractmethod
    def says(self, achieved: float, smallest: int) -> str:
        """Return the statement about the whole release, given the worst figure and the size of the smallest class."""

    def base_weights(self, column: Statement) -> NDArray[np.float64] | None:
        """Return how a generalised record is divided among the values under its node; None for equal parts."""
        return None

    def judge_classes(self, statement: Statement, evidence: Evidence) -> Check:
        if not statement.is_class and not evidence.quasi_identifiers(statement.name):
            raise self.refuses(statement, " beside no quasi-identifier")
        classes, overall = evidence.classes(statement.name), evidence.overall.get(statement.name)
        return ClassCheck(self, statement.name, classes, statement, overall)


class ClassCheck(Check):
    """Checks every class of a release."""

    def __init__(
        self, model: Any, title: str, classes: Classes, column: Statement | None = None, overall: Overall | None = None
    ) -> None:
        """Make the check. Classes are compared with the whole release, unless an overall distribution is given."""
        super().__init__(model, title)
        self.overall = overall
        self.published = column
        self.classes = classes
        self.needs = classes.needs

    @property
    def parts(self) -> Sequence[Accumulator]:
        return (self.classes,)

    def of_rows(self, verdict: Verdict) -> Verdict:
        by_holder = verdict.holds is True
        return replace(verdict, holds=None, by_holder=by_holder, statement=f"{verdict.statement}; {OF_ROWS}")

    def observe(self, batch: CellBatch) -> None:
        self.classes.observe(batch)

    def merge(self, other: ClassCheck) -> None:
        self.classes.merge(other.classes)

    def verdict(self) -> Verdict:
        return self.settle_findings(self.findings())

    def findings(self) -> ClassFindings:
        model, table = self.model, self.classes.table()
        figures, good = self._judge_table(table)
        if isinstance(table, PeopleTable) and model.judges_rows:
            by_rows, fine = self._judge_table(table.of_rows())
            figures, good = (np.minimum if model.higher_is_safer else np.maximum)(figures, by_rows), good & fine
        achieved = (figures.min() if model.higher_is_safer else figures.max()).item() if len(figures) else 0
        unlike = table.found != table.n
        fails = ~good | unlike
        return ClassFindings(
            classes=len(table),
            smallest=int(table.n.min()) if len(table) else 0,
            achieved=achieved,
            records=int(table.found.sum()) + table.stray,
            breaches=int(np.maximum(table.n, table.found)[fails].sum()) + table.stray,
            short=int(fails.sum()),
            unlike=bool(unlike.any() or table.stray),
            shortfalls=tuple(worst(self.classes, figures, table.n, fails, self.show)),
        )

    def _judge_table(self, table: ClassTable) -> Judged:
        """Return the model's figure for every class, and whether the class satisfies it."""
        model, overall = self.model, np.zeros(0)
        assert self.published is not None
        weights = model.base_weights(self.published)
        if model.relative:
            overall = table.shares(self.published.d, weights) if self.overall is None else self.overall.shares
        found, good = [np.zeros(0)], [np.zeros(0, bool)]
        for part in table.histograms(weights, model.counts_holders):
            figures, satisfied = model.judge_histograms(part, self.published, overall)
            found.append(np.asarray(figures, np.float64))
            good.append(satisfied)
        return np.concatenate(found), np.concatenate(good)

    def settle_findings(self, found: ClassFindings) -> Verdict:
        model = self.model
        statement = model.says(found.achieved, found.smallest) if found.classes else "there are no records"
        if found.unlike:
            statement = "the groups do not have as many records as their table says"
        basis = self.classes.basis if self.overall is None else self.overall.basis
        holds, more = found.records > 0 and found.breaches == 0, {"short": found.short, "shortfalls": found.shortfalls}
        return self.conclude(found.achieved, holds, basis, found.records, found.breaches, statement, **more)
