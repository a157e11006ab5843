"""Local privacy: a bound on what all drawn columns of a person disclose together, for every prior and all outside
knowledge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp, inf, log
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from noren.models.base import Check, Evidence, Model, Promise
from noren.models.class_check import OF_ROWS
from noren.models.verdict import Verdict
from noren.statements import CellBatch, CodeCells, Statement
from noren.statements.batch import PERSON

TOLERANCE = 1e-9


class LocalPrivacy(Model):
    """The draws of a person's columns together are epsilon-locally differentially private.

    Every drawn column is a randomiser of its own: the logarithm of its largest likelihood ratio is its epsilon, and the
    epsilons of a person's columns add up. The odds between any two things that could be true of a person then change
    by a factor of at most exp(epsilon), whatever an adversary knows. A set that always holds the truth (p = 1) has no
    epsilon. It speaks of one draw per person and column: where a person's rows show several, it does not hold.
    """

    model: Literal["local-privacy"] = "local-privacy"
    parameter: ClassVar[str] = "epsilon"
    coarsening_preserves: ClassVar[bool] = True
    higher_is_safer: ClassVar[bool] = False
    together: ClassVar[bool] = True
    epsilon: float = Field(
        gt=0, le=50, description="Largest sum of the columns' epsilons: the privacy budget that a method divides."
    )

    @property
    def holds_of_parts(self) -> bool:
        return True

    @property
    def identity(self) -> str:
        """Return the columns too, because requirements on all and on some of the columns may both be present."""
        return self.model if len(self.on) == 1 else f"{self.model}/{', '.join(sorted(self.on))}"

    @property
    def least_set_size(self) -> int:
        return 1

    @property
    def epsilon_together(self) -> float:
        return self.epsilon

    def checks(self, evidence: Evidence) -> list[Check]:
        """Return one check of all columns together."""
        for name in self.on:
            self.check(evidence.columns[name], evidence)
        return [BudgetCheck(self, [evidence.columns[name] for name in self.on], evidence.people)]

    def judge_sets(self, statement: Statement, evidence: Evidence) -> Check:
        return BudgetCheck(self, [statement], evidence.people)

    def judge_changed(self, statement: Statement, evidence: Evidence) -> Check:
        return BudgetCheck(self, [statement], evidence.people)

    @classmethod
    def probes(cls, statement: Statement | None) -> Sequence[Model]:
        if statement is None or statement.design is None:
            return []
        return [cls(on=statement.name, epsilon=1.0)]

    def promise(self, names: str, sets: bool) -> Promise:
        factor = exp(self.epsilon)
        return Promise(
            f"Whatever an adversary knows, the published {names} of a person change the odds between any two "
            f"possibilities by a factor of at most {factor:.3g} (total epsilon {self.epsilon:.4g}).",
            "It covers one release and these columns only; other columns may disclose more. What is true of many "
            "people can be learned about everybody.",
        )


class BudgetCheck(Check):
    """Computes the largest likelihood ratio of every column's cells from the published statements, and sums the
    epsilons."""

    def __init__(self, model: LocalPrivacy, statements: Sequence[Statement], people: bool) -> None:
        super().__init__(model, ", ".join(statement.name for statement in statements))
        self.statements = statements
        self.people = people
        self.needs = (*(statement.name for statement in statements), *((PERSON,) if people else ()))
        self.ratio = {statement.name: 1.0 for statement in statements}
        self._seen: dict[str, list[Any]] = {statement.name: [] for statement in statements}
        """Whose cell each is, where people have several rows."""

    def observe(self, batch: CellBatch) -> None:
        import polars as pl

        for statement in self.statements:
            cells, numbers = batch[statement.name].distinct()
            self.ratio[statement.name] = max(self.ratio[statement.name], largest_ratio(statement, cells))
            if self.people:
                person = batch[PERSON].data.astype(np.int64)  # type: ignore[attr-defined]
                shown = pl.Series(statement.to_csv(cells)).cast(pl.String)[numbers]
                self._seen[statement.name].append(pl.DataFrame({"person": person, "cell": shown}).unique())
        self.records += len(batch[self.statements[0].name])

    def merge(self, other: Self) -> None:
        super().merge(other)
        for name, ratio in other.ratio.items():
            self.ratio[name] = max(self.ratio[name], ratio)
            self._seen[name] += other._seen[name]

    def of_rows(self, verdict: Verdict) -> Verdict:
        """Return the verdict for rows: a sum that is too large fails; otherwise it is unknown how many draws a person
        has."""
        if verdict.holds is False:
            return verdict
        return replace(verdict, holds=None, by_holder=True, statement=f"{verdict.statement}; {OF_ROWS}")

    def verdict(self) -> Verdict:
        import polars as pl

        each = {name: log(ratio) if ratio < inf else inf for name, ratio in self.ratio.items()}
        total = sum(each.values())
        several: dict[str, int] = {}
        for name, parts in self._seen.items():
            if parts:
                draws = pl.concat(parts).unique().group_by("person").len()
                several[name] = int((draws["len"] > 1).sum())
        drawn_again = {name: count for name, count in several.items() if count}
        within = total <= self.model.epsilon * (1 + TOLERANCE) + TOLERANCE
        statement = "; ".join(f"{name} has epsilon {value:.4g}" for name, value in each.items())
        statement = f"epsilon {total:.4g} in all" + (f" ({statement})" if len(each) > 1 else "")
        if total == inf:
            bare = [name for name, value in each.items() if value == inf]
            statement = f"{', '.join(bare)} has no finite epsilon, because its published cells rule values out"
        elif drawn_again:
            names = ", ".join(f"{name} ({count} people)" for name, count in drawn_again.items())
            statement += f"; people have more than one draw in {names}, which discloses that their values differ"
        holds = self.records > 0 and within and not drawn_again
        breaches = self.records if not within else sum(drawn_again.values())
        return self.conclude(total, holds, "the published design", self.records, breaches, statement)


def largest_ratio(statement: Statement, cells: Any) -> float:
    """Return the largest ratio between the probabilities of one cell under two true values.

    For changed values over all that could be published, not only over those that were.
    """
    d = statement.d
    if statement.kinds is not None:
        cells = CodeCells(d, np.arange(d))
    likely = statement.likelihood(cells)
    if likely is None or not len(likely):
        return 1.0
    high = np.maximum.reduceat(likely.weight, likely.bounds[:-1])
    low = np.minimum.reduceat(likely.weight, likely.bounds[:-1])
    some_outside = likely.lengths < d
    high = np.where(some_outside, np.maximum(high, likely.floor), high)
    low = np.where(some_outside, np.minimum(low, likely.floor), low)
    return float((high / low).max()) if (low > 0).all() else inf
