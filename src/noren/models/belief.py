"""The model `belief`: a limit on beliefs of somebody who reads every published column of a record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import floor
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.errors import ModelDoesNotApply
from noren.estimates import Belief as Found
from noren.estimates import believed
from noren.models.base import Accumulator, Check, Evidence, Model, Promise
from noren.models.class_check import OF_ROWS
from noren.models.verdict import Verdict
from noren.statements import CellBatch, Statement, concat
from noren.statements.batch import PERSON


class Belief(Model):
    """No secret is believed above `most` by an adversary who combines all published columns of the record.

    Other requirements speak of one column's own cells. Here every column counts: exact cells, generalised ones and sets
    are weighed together by Bayes' rule, with how they go together learned from the *other* people of the release
    (cross-fitted), as any recipient could: the secret with every column, and with pairs of columns that tell much or
    tell it only together (a parity, a sum). What four or more columns tell only together is not covered. No method
    looks for it: it is judged on what would be published, and fails where columns tell too much together.
    """

    model: Literal["belief"] = "belief"
    parameter: ClassVar[str] = "most"
    about: ClassVar[Literal["columns", "classes", "terms", "release"]] = "release"
    coarsening_preserves: ClassVar[bool] = False
    higher_is_safer: ClassVar[bool] = False
    figure_ignores: ClassVar[frozenset[str]] = frozenset({"most"})
    grounds: ClassVar[frozenset[str]] = frozenset({"sets", "changed values", "classes"})
    most: float = Field(gt=0, lt=1, description="Largest permitted belief in any value of a person's secret.")
    given: Literal["published", "own"] = Field(
        default="published",
        description="What the adversary reads of the record: all published columns, or only the cell of the secret.",
    )
    share: float = Field(default=0.0, ge=0, lt=1, description="Share of people for whom the belief may exceed this.")

    def check(self, statement: Statement, evidence: Evidence) -> Check:
        return self._check(statement, Gathered(evidence))

    def checks(self, evidence: Evidence) -> list[Check]:
        gathered = Gathered(evidence)
        return [self._check(evidence.columns[name], gathered) for name in self.on]

    def _check(self, statement: Statement, gathered: Gathered) -> Check:
        if statement.terms is not None or statement.rows_per_record > 1 or statement.d == 0:
            raise ModelDoesNotApply(
                f"belief cannot judge column {statement.name!r}, which is {statement.words}.",
                hint="It is checked on columns with a list of values, where a row is one person's.",
            )
        return BeliefCheck(self, statement, gathered)

    @property
    def least_set_size(self) -> int:
        return 1

    def promise(self, names: str, sets: bool) -> Promise:
        who = "Somebody who reads all published columns of a person's record"
        if self.given == "own":
            who = f"Somebody who reads a person's published cell of {names} and knows the frequencies of the values"
        apart = "" if not self.share else f", apart from {self.share:.4g} of the people"
        return Promise(
            f"{who}, and has learned from the other people of the release how columns are related, believes no "
            f"value of {names} with more than {self.most:.4g}{apart}.",
            "It does not limit an adversary who knows more about the person than is published, who knows other "
            "people's secrets, or who has learned the relations between columns from a larger table of the same "
            "kind. Relations that involve four or more columns at once (the secret included) are not covered.",
        )


class Gathered(Accumulator):
    """Gathers the cells of all columns that an adversary can read, for the beliefs in any of them."""

    def __init__(self, evidence: Evidence) -> None:
        readable = [s for s in evidence.columns.values() if s.terms is None and s.rows_per_record == 1]
        self.statements = tuple(readable)
        self.people = evidence.people
        self.needs = (*(s.name for s in readable), *([PERSON] if evidence.people else []))
        self.batches: list[CellBatch] = []

    def observe(self, batch: CellBatch) -> None:
        self.batches.append({name: batch[name] for name in self.needs})

    def merge(self, other: Self) -> None:
        self.batches += other.batches

    def belief(self, name: str, given: str) -> tuple[Found, NDArray[np.int64] | None] | None:
        """Return the beliefs about every record, and its person if known."""
        if not self.batches:
            return None
        cells = concat(self.batches)
        self.batches = [cells]
        whose = cells[PERSON].data.astype(np.int64) if self.people else None  # type: ignore[attr-defined]
        others = None if given == "published" else ()
        found = believed(name, self.statements, cells, given=others, people=whose)
        return None if found is None else (found, whose)


class BeliefCheck(Check):
    """Counts the people whose secret is believed too firmly."""

    def __init__(self, model: Belief, statement: Statement, gathered: Gathered) -> None:
        super().__init__(model, statement.name)
        self.gathered = gathered
        self.needs = gathered.needs

    @property
    def parts(self) -> Sequence[Accumulator]:
        return (self.gathered,)

    def observe(self, batch: CellBatch) -> None:
        self.gathered.observe(batch)

    def merge(self, other: BeliefCheck) -> None:
        self.gathered.merge(other.gathered)

    def of_rows(self, verdict: Verdict) -> Verdict:
        """Return the verdict for rows: a row that exceeds the limit also exceeds it for its person, but several rows
        together may disclose more."""
        if verdict.holds is False:
            return verdict
        return replace(verdict, holds=None, by_holder=True, statement=f"{verdict.statement}; {OF_ROWS}")

    def verdict(self) -> Verdict:
        model = self.model
        told = self.gathered.belief(self.column, model.given)
        beliefs, used = np.zeros(0), ""
        if told is not None:
            found, whose = told
            beliefs = found.belief if whose is None else _firmest(found.belief, whose)
            names = sorted(found.used, key=lambda name: -found.used[name])[:3]
            used = f"; the columns that disclose most are {', '.join(names)}" if names else ""
        people = len(beliefs)
        allowed = floor(model.share * people + 1e-9)
        ranked = -np.sort(-beliefs)
        achieved = float(ranked[min(allowed, people - 1)]) if people else 1.0
        breaches = int((beliefs > model.most + 1e-9).sum())
        holds, statement = people > 0 and breaches <= allowed, _says(beliefs, model, achieved) + used
        return self.conclude(achieved, holds, "an estimate from the release", people, breaches, statement)


def _firmest(belief: NDArray[np.float64], whose: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the largest belief about every person over the person's rows."""
    number = np.unique(whose, return_inverse=True)[1].reshape(-1)
    out = np.zeros(int(number.max(initial=-1)) + 1)
    np.maximum.at(out, number, belief)
    return out


def _says(beliefs: NDArray[np.float64], model: Belief, achieved: float) -> str:
    if not len(beliefs):
        return "there are no records"
    above = float((beliefs > model.most + 1e-9).mean())
    reading = "all published columns, singly and in pairs" if model.given == "published" else "the own cell"
    most = f"no secret is believed with more than {achieved:.4g}"
    if model.share:
        most = f"secrets of at most {model.share:.4g} of the people are believed with more than {achieved:.4g}"
    return f"from {reading}, {most}; {above:.1%} above {model.most:g}"
