"""k-anonymity: every record looks like k - 1 others (Samarati and Sweeney)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from noren.cells import CellBatch, Cells
from noren.errors import ModelDoesNotApply
from noren.models.base import Check, Evidence, Form, Model, PublishedColumn, Verdict
from noren.models.classes import Classes, worst


class KAnonymity(Model):
    """Whoever knows a person's quasi-identifiers finds at least k records that could be the person's.

    It hides which record is whose. It says nothing about secrets: k records with one and the same secret satisfy it,
    so sensitive columns need a requirement of their own.
    """

    model: Literal["k-anonymity"] = "k-anonymity"
    parameter: ClassVar[str] = "k"
    forms: ClassVar[tuple[Form, ...]] = ("value", "open", "node", "group")
    about: ClassVar[Literal["columns", "classes", "terms"]] = "classes"
    coarsening_preserves: ClassVar[bool] = True
    on: tuple[str, ...] = Field(
        default=(), description="The columns that a person can be found by; by default all quasi-identifiers."
    )
    k: int = Field(ge=2, description="Smallest permitted class of records that look alike.")

    def check(self, column: PublishedColumn, evidence: Evidence) -> Check:
        """The classes by one column alone. `checks` takes all columns together."""
        return self._by([column], evidence, column.name)

    def checks(self, evidence: Evidence) -> list[Check]:
        names = self.on or evidence.quasi_identifiers()
        if not names:
            raise ModelDoesNotApply(
                "k-anonymity counts records with equal quasi-identifiers, and the release has none.",
                hint="Give columns by which a person can be found the role 'quasi-identifier', or remove it.",
            )
        title = ", ".join(self.on) or "quasi-identifiers"
        return [self._by([evidence.columns[name] for name in names], evidence, title)]

    def _by(self, columns: Sequence[PublishedColumn], evidence: Evidence, title: str) -> Check:
        for column in columns:
            if column.form not in self.forms:
                raise self.refuse_form(column)
        return ClassSizeCheck(self, title, evidence.classes(None, [column.name for column in columns]))


class ClassSizeCheck(Check):
    """Counts the records of every class."""

    def __init__(self, model: KAnonymity, title: str, classes: Classes) -> None:
        super().__init__(title)
        self.model = model
        self.classes = classes
        self.needs = classes.needs
        self._batches = 0

    def observe(self, cells: Cells) -> None:
        if len(self.needs) > 1:
            raise ModelDoesNotApply("k-anonymity is judged on all quasi-identifiers together.")
        self.observe_batch({self.needs[0]: cells})

    def observe_batch(self, batch: CellBatch) -> None:
        self.classes.observe(self._batches, batch)
        self._batches += 1

    def verdict(self) -> Verdict:
        n = self.classes.table().n
        records = int(n.sum())
        achieved = int(n.min()) if records else 0
        fails = n < self.model.k
        breaches = int(n[fails].sum())
        return Verdict(
            model=self.model.model,
            column=self.column,
            required=self.model.k,
            achieved=achieved,
            holds=records > 0 and breaches == 0,
            basis="the release alone",
            records=records,
            breaches=breaches,
            statement=f"every record looks like at least {max(0, achieved - 1)} others",
            short=int(fails.sum()),
            shortfalls=worst(self.classes, n, n, fails, self.show),
        )
