"""Models whose published sets hold values that lie apart, and the one check of such sets."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.models.base import Model
from noren.models.set_check import SetCheck
from noren.models.verdict import Verdict
from noren.statements import CellBatch, SetCells, Statement

TOLERANCE = 1e-6
"""To which a design of least belief is found."""


class Separating(Model):
    """A requirement under which the values of a published set lie apart, and none of them is believed too much."""

    separates: ClassVar[bool] = True
    most: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Largest belief in one value of a set, all values believed alike before; 1/l unless given.",
    )

    @property
    def most_belief(self) -> float:
        return 1 / self.required if self.most is None else self.most

    def believed(self, verdict: Verdict, seen: float, design: float | None) -> Verdict:
        """The verdict with the largest belief in one value: of the sets that were seen, and of all that may come."""
        worst = max(seen, design or 0.0)
        text = f"{verdict.statement}; one who believes all values alike believes none of a set above {worst:.4g}"
        verdict = replace(verdict, basis="the published design")
        if worst <= self.most_belief * (1 + TOLERANCE):
            return replace(verdict, statement=text)
        text += f", where {self.most_belief:.4g} was asked"
        return replace(verdict, statement=text, holds=False, breaches=verdict.breaches or verdict.records)


class SeparationCheck(SetCheck):
    """Looks for l members of each set that are pairwise compatible, and for the likeliest member of each, straight from
    the definition."""

    model: Separating

    def __init__(
        self, model: Separating, statement: Statement, compatible: NDArray[np.bool_], required: int, means: str
    ) -> None:
        super().__init__(model, statement, required, means)
        self.compatible = compatible
        self.size = required
        self.belief = 0.0

    def observe(self, batch: CellBatch) -> None:
        cells: SetCells = self.statement.checked(batch[self.column])
        if not len(cells):
            return
        self.records += len(cells)
        sets, times = cells.counted()
        sizes = sets.sizes()
        for eta in np.unique(sizes).tolist():
            members = sizes == eta
            part = sets.take(np.flatnonzero(members))
            found = largest_separated(part.codes(eta), self.compatible, self.size)
            beliefs = largest_beliefs(self.statement, part, eta)
            above = beliefs > self.model.most_belief * (1 + TOLERANCE)
            self.keep_least(int(found.min()))
            self.belief = max(self.belief, float(beliefs.max(initial=0.0)))
            self.breaches += int(times[members][(found < self.size) | above].sum())

    def merge(self, other: SeparationCheck) -> None:  # type: ignore[override]
        super().merge(other)
        self.belief = max(self.belief, other.belief)

    def verdict(self) -> Verdict:
        design = self.statement.design
        return self.model.believed(super().verdict(), self.belief, None if design is None else design.worst_belief())


def largest_beliefs(statement: Statement, sets: SetCells, eta: int) -> NDArray[np.float64]:
    """For every set the belief in its likeliest member, all values believed alike before; 0 where nothing can be
    said, because the published design never draws such a set."""
    if eta != statement.values_per_record:
        return np.zeros(len(sets))
    likely = statement.likelihood(sets)
    if likely is None:
        return np.zeros(len(sets))
    weights = likely.weight.reshape(len(sets), eta)
    total = weights.sum(axis=1) + likely.floor * (statement.d - eta)
    return np.divide(weights.max(axis=1), total, out=np.zeros(len(sets)), where=total > 0)


def largest_separated(codes: NDArray, compatible: NDArray[np.bool_], enough: int) -> NDArray[np.int64]:
    """For each set the size of its largest mutually compatible subset, looked for up to `enough`."""
    eta = codes.shape[1]
    out = np.minimum(np.ones(len(codes), np.int64), eta)
    for size in range(2, min(eta, enough) + 1):
        found = np.zeros(len(codes), bool)
        for chosen in combinations(range(eta), size):
            good = np.ones(len(codes), bool)
            for i, j in combinations(chosen, 2):
                good &= compatible[codes[:, i], codes[:, j]]
            found |= good
        out[found] = size
    return out
