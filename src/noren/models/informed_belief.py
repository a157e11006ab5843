"""Informed belief: somebody who knows public shares believes no value above a bound (for paper 000's sets)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.errors import ModelDoesNotApply
from noren.models.base import Check, Evidence, Model, Promise
from noren.models.verdict import Verdict
from noren.schema.column import Column
from noren.statements import CellBatch, SetCells, Statement

TOLERANCE = 1e-6
"""To which a belief may exceed the bound: how exactly a design meets the shares, and more."""
FACTOR = 2.0
"""The verdict also says what is believed by somebody whose odds between any two values differ by so much."""
CELLS_AT_ONCE = 1 << 22
Share = Annotated[float, Field(gt=0, lt=float("inf"))]


class InformedBelief(Model):
    """Somebody who knows public shares of the values, and reads a person's set, believes no value above `most`.

    A value that the shares alone make likelier than that may keep its share. The shares are a public fact, the same
    before this table was seen: official statistics, or the estimate of an older release, noised margins among it. The
    table's own counts are refused: what is published would tell them. The bound is for this prior: somebody whose odds
    between any two values are c times these ends with odds at most c times as high, and somebody who thinks all values
    equally likely can be surer than one is of uniform decoys; frequency-l-diversity bounds that too where both are
    asked.
    """

    model: Literal["informed-belief"] = "informed-belief"
    parameter: ClassVar[str] = "most"
    coarsening_preserves: ClassVar[bool] = True
    higher_is_safer: ClassVar[bool] = False
    knows_shares: ClassVar[bool] = True
    most: float = Field(
        gt=0, lt=1, description="Largest belief in any value, unless its public share is larger already."
    )
    prior: dict[str, Share] | str = Field(
        description="Public shares of all values, in any unit: a table, or the path of a CSV of value,share or of an "
        "older release. Never the table's own counts."
    )

    @property
    def stands(self) -> int:
        return 2

    @property
    def least_set_size(self) -> int:
        """Return 1: sets of any size may meet the model; the prior decides."""
        return 1

    def shares_of(self, column: Column) -> NDArray[np.float64]:
        prior, values = self.prior, column.domain.values
        if isinstance(prior, str):
            raise ModelDoesNotApply(
                f"the shares of {column.name!r} are in a file that has not been read.",
                hint="Put the requirement into a Policy, which reads the file, or give the shares as a table.",
            )
        if lacking := sum(value not in prior for value in values):
            raise ModelDoesNotApply(
                f"the prior lacks shares for {lacking} of the {len(values)} values of {column.name!r}.",
                hint="Give every value of its domain a share above 0, and declare the domain with values = [...].",
            )
        shares = np.array([prior[value] for value in values])
        return np.asarray(shares / shares.sum())

    def judge_sets(self, statement: Statement, evidence: Evidence) -> Check:
        if statement.design is None:
            raise self.refuses(statement, ", drawn by an unknown design")
        return InformedCheck(self, statement, self.shares_of(statement.column))

    def promise(self, names: str, sets: bool) -> Promise:
        return Promise(
            f"Somebody who knows the public shares of {names} listed in the manifest, and reads a person's "
            f"published set, believes no value with more than {self.most:.4g}, unless its public share is larger.",
            "It covers those shares and the set of this column only. Somebody who assumes other shares can be "
            "more certain: for example, an adversary who thinks all values equally likely may believe a rare "
            "value with "
            "more than 1 over the set size. Other columns of the record may disclose more.",
        )


class InformedCheck(Check):
    """Applies Bayes' rule to every distinct published set, with the likelihood of the published design."""

    def __init__(self, model: InformedBelief, statement: Statement, shares: NDArray[np.float64]) -> None:
        super().__init__(model, statement.name)
        self.statement = statement
        self.shares = shares
        self.worst = float(shares.max())
        self.risen = 0.0
        """The largest belief in a value that is believed more firmly than its share."""
        self.even = 0.0

    def observe(self, batch: CellBatch) -> None:
        cells: SetCells = self.statement.check_cells(batch[self.column])
        if not len(cells):
            return
        sets, times = cells.count_sets()
        step = max(1, CELLS_AT_ONCE // len(self.shares))
        for start in range(0, len(sets), step):
            part = np.arange(start, min(start + step, len(sets)))
            self._judge(sets.take(part), times[part])

    def _judge(self, sets: SetCells, times: NDArray[np.int64]) -> None:
        beliefs = beliefs_of(self.statement, sets, self.shares)
        limit = np.maximum(self.model.most, self.shares) * (1 + TOLERANCE)
        self.records += int(times.sum())
        self.breaches += int(times[(beliefs > limit).any(axis=1)].sum())
        self.worst = max(self.worst, float(beliefs.max()))
        self.risen = max(self.risen, float(beliefs[beliefs > self.shares * (1 + TOLERANCE)].max(initial=0.0)))
        alike = beliefs_of(self.statement, sets, np.full(len(self.shares), 1 / len(self.shares)))
        self.even = max(self.even, float(alike.max()))

    def merge(self, other: Self) -> None:
        super().merge(other)
        self.worst = max(self.worst, other.worst)
        self.risen = max(self.risen, other.risen)
        self.even = max(self.even, other.even)

    def verdict(self) -> Verdict:
        odds = FACTOR * self.worst / max(1 - self.worst, 1e-300)
        statement = (
            f"the largest belief is {self.worst:.4g} for somebody who knows the public shares, "
            f"{odds / (1 + odds):.4g} if their odds between values are up to {FACTOR:g} times off, and "
            f"{self.even:.4g} for somebody who thinks all values equally likely"
        )
        holds = self.records > 0 and self.breaches == 0
        achieved = self.risen or self.worst
        return self.conclude(achieved, holds, "the published design", self.records, self.breaches, statement)


def beliefs_of(statement: Statement, sets: SetCells, prior: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return P(v | R) for every set and every value of the domain; 1 if the published design never draws such a set."""
    likely = statement.likelihood(sets)
    assert likely is not None
    joint = np.full((len(sets), len(prior)), likely.floor)
    joint[np.repeat(np.arange(len(sets)), likely.lengths), likely.value] = likely.weight
    joint *= prior
    total = joint.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(joint, total, out=np.ones_like(joint), where=total > 0))
