"""Models about classes of records, and the one check that serves them all.

A model says for every class one figure and whether the class satisfies it; the check gathers the classes, keeps the
worst figure and counts the records of classes that fail.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from noren.models.base import Accumulator, Check, Evidence, Model, Overall
from noren.models.classes import Classes, ClassFindings, worst
from noren.models.histograms import Histograms
from noren.models.verdict import Verdict
from noren.statements import CellBatch, Statement

TOLERANCE = 1e-9
OF_ROWS = "rows were counted, people may have several, and the release does not say whose they are"

Judged = tuple[NDArray, NDArray[np.bool_]]
"""One figure per class, and whether each class satisfies the model."""


class ClassModel(Model):
    """A requirement on what every class of records holds of a sensitive column."""

    coarsening_preserves: ClassVar[bool] = True
    counts_holders: ClassVar[bool] = False
    """Where people have several rows: whether a value counts for all who have it, or by the shares of their rows."""

    @abstractmethod
    def judged(self, part: Histograms, column: Statement, overall: NDArray[np.float64]) -> Judged:
        """Judge some classes. `overall` is the distribution of the whole release, for models that compare with it."""

    @abstractmethod
    def says(self, achieved: float, smallest: int) -> str:
        """The statement about the whole release, given the worst figure and the size of the smallest class."""

    def base_weights(self, column: Statement) -> NDArray[np.float64] | None:
        """How a generalised record is divided among the values under its node; None for equal parts."""
        return None

    def judge_classes(self, statement: Statement, evidence: Evidence) -> Check:
        if not statement.is_class and not evidence.quasi_identifiers(statement.name):
            raise self.refuses(statement, " beside no quasi-identifier")
        return ClassCheck(self, statement, evidence.classes(statement.name), evidence.overall.get(statement.name))


class ClassCheck(Check):
    """Judges every class of a release."""

    def __init__(self, model: ClassModel, column: Statement, classes: Classes, overall: Overall | None = None) -> None:
        """Classes are compared with all of them together, unless an overall distribution is given."""
        super().__init__(column.name)
        self.model = model
        self.overall = overall
        self.published = column
        self.classes = classes
        self.needs = classes.needs
        self.weights = model.base_weights(column)

    @property
    def parts(self) -> Sequence[Accumulator]:
        return (self.classes,)

    def of_rows(self, verdict: Verdict) -> Verdict:
        return replace(verdict, holds=None, statement=f"{verdict.statement}; {OF_ROWS}")

    def observe(self, batch: CellBatch) -> None:
        self.classes.observe(batch)

    def merge(self, other: ClassCheck) -> None:
        self.classes.merge(other.classes)

    def verdict(self) -> Verdict:
        return self.settled(self.findings())

    @property
    def is_apart(self) -> bool:
        """Whether classes can be judged some here and some there: none is compared with all of them together."""
        return self.overall is not None or not self.model.relative

    def findings(self) -> ClassFindings:
        model, table, d = self.model, self.classes.table(), self.published.d
        overall = np.zeros(0)
        if model.relative:
            overall = table.shares(d, self.weights) if self.overall is None else self.overall.shares
        found = [np.zeros(0)]
        good = [np.zeros(0, bool)]
        for part in table.histograms(self.weights, model.counts_holders):
            figures, satisfied = model.judged(part, self.published, overall)
            found.append(np.asarray(figures, np.float64))
            good.append(satisfied)
        figures = np.concatenate(found)
        achieved = float(figures.min() if model.higher_is_safer else figures.max()) if len(figures) else 0.0
        unlike = table.found != table.n
        fails = ~np.concatenate(good) | unlike
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

    def settled(self, found: ClassFindings) -> Verdict:
        model = self.model
        statement = model.says(found.achieved, found.smallest) if found.classes else "there are no records"
        if found.unlike:
            statement = "the groups do not have as many records as their table says"
        return Verdict(
            model=model.model,
            column=self.column,
            required=model.required,
            achieved=found.achieved,
            holds=found.records > 0 and found.breaches == 0,
            basis=self.classes.basis if self.overall is None else self.overall.basis,
            records=found.records,
            breaches=found.breaches,
            statement=statement,
            short=found.short,
            shortfalls=found.shortfalls,
        )
