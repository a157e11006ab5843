"""k-anonymity: every record looks like k - 1 others (Samarati and Sweeney)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field

from noren.errors import ModelDoesNotApply
from noren.models.base import Accumulator, Check, Evidence, Model, Promise, SearchRule
from noren.models.class_check import OF_ROWS
from noren.models.classes import Classes, ClassFindings, worst
from noren.models.verdict import Verdict
from noren.statements import CellBatch, Statement


class KAnonymity(Model):
    """Whoever knows a person's quasi-identifiers finds at least k records that could be the person's.

    It hides which record is whose. It says nothing about secrets: k records with one and the same secret satisfy it,
    so sensitive columns need a requirement of their own.
    """

    model: Literal["k-anonymity"] = "k-anonymity"
    parameter: ClassVar[str] = "k"
    about: ClassVar[Literal["columns", "classes", "terms", "release"]] = "classes"
    coarsening_preserves: ClassVar[bool] = True
    together: ClassVar[bool] = True
    on: tuple[str, ...] = Field(
        default=(), description="The columns that a person can be found by; by default all quasi-identifiers."
    )
    k: int = Field(ge=2, description="Smallest permitted class of records that look alike.")

    @property
    def least_class_size(self) -> int:
        return self.k

    @property
    def search_rule(self) -> SearchRule:
        return SearchRule("k_anonymity", self.k)

    def judge_classes(self, statement: Statement, evidence: Evidence) -> Check:
        """The classes by one column alone. `checks` takes all columns together."""
        return self._by([statement.name], evidence, statement.name)

    def judge_open(self, statement: Statement, evidence: Evidence) -> Check:
        return self._by([statement.name], evidence, statement.name)

    def checks(self, evidence: Evidence) -> list[Check]:
        names = self.on or evidence.quasi_identifiers()
        if not names:
            raise ModelDoesNotApply(
                "k-anonymity counts records with equal quasi-identifiers, and the release has none.",
                hint="Give columns by which a person can be found the role 'quasi-identifier', or remove it.",
            )
        for name in names:
            self.check(evidence.columns[name], evidence)
        return [self._by(names, evidence, ", ".join(self.on) or "quasi-identifiers")]

    def _by(self, names: Sequence[str], evidence: Evidence, title: str) -> Check:
        return ClassSizeCheck(self, title, evidence.classes(None, names))

    @classmethod
    def probes(cls, statement: Statement | None) -> Sequence[Model]:
        return [cls(k=2)] if statement is None else []

    def promise(self, names: str, sets: bool) -> Promise:
        by = names or "the columns that people can be found by"
        return Promise(
            f"Whoever looks a person up by {by} finds at least {self.k} published records that could be the person's.",
            "It says nothing about secrets: if all these records share one secret, it is learned without knowing which "
            "record is whose.",
        )


class ClassSizeCheck(Check):
    """Counts the records of every class."""

    def __init__(self, model: KAnonymity, title: str, classes: Classes) -> None:
        super().__init__(title)
        self.model = model
        self.classes = classes
        self.needs = classes.needs

    @property
    def parts(self) -> Sequence[Accumulator]:
        return (self.classes,)

    def of_rows(self, verdict: Verdict) -> Verdict:
        """Fewer than k rows are fewer than k people; of k rows nobody knows."""
        if verdict.holds is False:
            return verdict
        return replace(verdict, holds=None, statement=f"{verdict.statement}; {OF_ROWS}")

    def observe(self, batch: CellBatch) -> None:
        self.classes.observe(batch)

    def merge(self, other: ClassSizeCheck) -> None:
        self.classes.merge(other.classes)

    def verdict(self) -> Verdict:
        return self.settled(self.findings())

    @property
    def is_apart(self) -> bool:
        """Whether classes can be judged some here and some there."""
        return True

    def findings(self) -> ClassFindings:
        n = self.classes.table().n
        fails = n < self.model.k
        return ClassFindings(
            classes=len(n),
            smallest=int(n.min()) if len(n) else 0,
            achieved=int(n.min()) if len(n) else 0,
            records=int(n.sum()),
            breaches=int(n[fails].sum()),
            short=int(fails.sum()),
            shortfalls=tuple(worst(self.classes, n, n, fails, self.show)),
        )

    def settled(self, found: ClassFindings) -> Verdict:
        return Verdict(
            model=self.model.model,
            column=self.column,
            required=self.model.k,
            achieved=found.achieved,
            holds=found.records > 0 and found.breaches == 0,
            basis=self.classes.basis,
            records=found.records,
            breaches=found.breaches,
            statement=_words(found.records, max(0, int(found.achieved) - 1)),
            short=found.short,
            shortfalls=found.shortfalls,
        )


def _words(records: int, others: int) -> str:
    if others == 0:
        return "some record looks like no other" if records else "there is no record"
    return f"every record looks like at least {others} other{'s' if others > 1 else ''}"
