"""k-anonymity: every record shares its quasi-identifiers with k - 1 others (Samarati and Sweeney)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from noren.errors import ModelDoesNotApply
from noren.models.base import Check, Evidence, Model, Promise, SearchRule
from noren.models.class_check import ClassCheck, Judged
from noren.models.histograms import ClassTable
from noren.models.verdict import Verdict
from noren.statements import Statement


class KAnonymity(Model):
    """Somebody who knows a person's quasi-identifiers finds at least k matching records.

    It does not protect secrets: k records with the same secret satisfy it, so sensitive columns need a requirement of
    their own.
    """

    model: Literal["k-anonymity"] = "k-anonymity"
    parameter: ClassVar[str] = "k"
    about: ClassVar[Literal["columns", "classes", "terms", "release"]] = "classes"
    coarsening_preserves: ClassVar[bool] = True
    together: ClassVar[bool] = True
    judges_rows: ClassVar[bool] = False  # a class has at least as many rows as people
    on: tuple[str, ...] = Field(
        default=(), description="The columns by which a person can be found; by default all quasi-identifiers."
    )
    k: int = Field(ge=2, description="Smallest permitted number of records with the same quasi-identifiers.")

    @property
    def least_class_size(self) -> int:
        return self.k

    @property
    def search_rule(self) -> SearchRule:
        return SearchRule("k_anonymity", self.k)

    def judge_classes(self, statement: Statement, evidence: Evidence) -> Check:
        """Check the classes by one column. `checks` takes all columns together."""
        return self._by([statement.name], evidence, statement.name)

    def judge_open(self, statement: Statement, evidence: Evidence) -> Check:
        return self._by([statement.name], evidence, statement.name)

    def checks(self, evidence: Evidence) -> list[Check]:
        names = self.on or evidence.quasi_identifiers()
        if not names:
            raise ModelDoesNotApply(
                "k-anonymity counts records with equal quasi-identifiers, and the release has none.",
                hint=(
                    "Give the role 'quasi-identifier' to columns by which a person can be found, or remove the "
                    "requirement."
                ),
            )
        for name in names:
            self.check(evidence.columns[name], evidence)
        return [self._by(names, evidence, ", ".join(self.on) or "quasi-identifiers")]

    def _by(self, names: Sequence[str], evidence: Evidence, title: str) -> Check:
        return ClassSizeCheck(self, title, evidence.classes(None, names))

    def says(self, achieved: float, smallest: int) -> str:
        others = max(0, int(achieved) - 1)
        if others == 0:
            return "some record is unique in its quasi-identifiers"
        return f"every record shares its quasi-identifiers with at least {others} other{'s' if others > 1 else ''}"

    @classmethod
    def probes(cls, statement: Statement | None) -> Sequence[Model]:
        return [cls(k=2)] if statement is None else []

    def promise(self, names: str, sets: bool) -> Promise:
        by = names or "the columns by which people can be found"
        return Promise(
            f"Somebody who searches for a person by {by} finds at least {self.k} matching records.",
            "It does not protect secrets: if all matching records share one secret, that secret is disclosed.",
        )


class ClassSizeCheck(ClassCheck):
    """Counts the records of every class, or its people if they may have several records."""

    def of_rows(self, verdict: Verdict) -> Verdict:
        """Return the verdict for rows: fewer than k rows are fewer than k people; k rows prove nothing."""
        return verdict if verdict.holds is False else super().of_rows(verdict)

    def _judge_table(self, table: ClassTable) -> Judged:
        return table.n, table.n >= self.model.k
