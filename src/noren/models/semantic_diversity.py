"""(l, d)-semantic diversity: l values stay possible that are far apart in meaning (paper 003, definition 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.errors import ModelDoesNotApply
from noren.models.base import KNOWS_SHARES, Check, Evidence, Model, Need, Promise
from noren.models.separation import Separating, SeparationCheck, largest_separated
from noren.models.set_check import ValuesCheck
from noren.models.shuffled import MemberCheck, partnered
from noren.models.verdict import Verdict
from noren.schema.column import Column
from noren.statements import CellBatch, SetCells, Statement

TOLERANCE = 1e-9
MOST_L = 5
"""Up to which l the distance is measured."""
LARGEST_SET = 16
"""Beyond so many members the subsets of a set are too many to try."""


class SemanticDiversity(Separating):
    """Every published set holds l values at mutual distance d or more, so that its members mean different things.

    The distance is the column's own. Of the members none is believed above 1/l (or `most`) by somebody who believed
    all values alike, whatever the design. Like every diversity of sets it does not bound an adversary who knows how
    common the values are. Coarsening preserves it: with the records of two classes each keeps its set, and with their
    shuffled members each value keeps its partners.
    """

    model: Literal["semantic-diversity"] = "semantic-diversity"
    coarsening_preserves: ClassVar[bool] = True
    l: int = Field(ge=2, description="Number of values that must stay possible and far apart.")  # noqa: E741
    d: float = Field(gt=0, description="Least distance between any two of them.")

    @property
    def needs(self) -> frozenset[Need]:
        return frozenset({"distance"})

    def judge_sets(self, statement: Statement, evidence: Evidence) -> Check:
        compatible = self._compatible(statement)
        return SeparationCheck(self, statement, compatible, self.l, f"every record {self._means}")

    def judge_members(self, statement: Statement, evidence: Evidence) -> Check:
        compatible = self._compatible(statement)
        return MemberCheck(self, statement, evidence, compatible, self.l, f"every class {self._means}")

    @property
    def judges_left_out(self) -> bool:
        return True

    def left_out_checks(self, evidence: Evidence) -> list[Check]:
        """Every value among them lies in a set of l values, of theirs, that are far apart."""
        out: list[Check] = []
        for name in self.on:
            statement = evidence.columns[name]
            compatible = self._compatible(statement)

            def count(values: NDArray[np.int64], apart: NDArray[np.bool_] = compatible) -> int:
                return partnered(values.tolist(), apart, self.l)

            out.append(ValuesCheck(self, statement, count, self.l, f"each of them {self._means}"))
        return out

    @property
    def _means(self) -> str:
        return f"leaves {{achieved}} values possible at mutual distance {self.d:g} or more"

    def _compatible(self, statement: Statement) -> NDArray[np.bool_]:
        return distances_of(statement) >= self.d * (1 - TOLERANCE)

    def separation(self, column: Column) -> tuple[NDArray[np.float64], float]:
        assert column.distances is not None
        return column.distances, self.d

    @classmethod
    def probes(cls, statement: Statement | None) -> Sequence[Model]:
        design = None if statement is None else statement.design
        if statement is None or design is None or statement.column.distances is None or design.eta > LARGEST_SET:
            return []
        return [cls(on=statement.name, l=size, d=1.0) for size in range(2, min(MOST_L, design.eta) + 1)]

    @property
    def measured(self) -> str:
        return "d"

    def measuring(self, evidence: Evidence) -> Check:
        (name,) = self.on
        if evidence.columns[name].rows_per_record > 1:
            raise self.refuses(evidence.columns[name])
        return FrontierCheck(self, evidence.columns[name])

    def promise(self, names: str, sets: bool) -> Promise:
        return Promise(
            f"For every person at least {self.l} values of {names} remain possible that differ in meaning, any two by "
            f"a distance of {self.d:g} or more; somebody who thinks all values equally likely believes none of them "
            f"with more than {self.most_belief:.3g}.",
            "The distance is the one that the policy declares; other relations between values are not considered. "
            + KNOWS_SHARES,
        )


def distances_of(statement: Statement) -> NDArray[np.float64]:
    """The published distances between a column's values."""
    found = statement.column.distances
    if found is None:
        raise ModelDoesNotApply(
            f"semantic-diversity of {statement.name!r} needs a distance between its values.",
            hint='Publish the column with distance = "ordinal", "numeric", "tree" or a matrix.',
        )
    return found


class FrontierCheck(Check):
    """The largest d at which every set still has l values that far apart: what a column achieves."""

    def __init__(self, model: SemanticDiversity, statement: Statement) -> None:
        super().__init__(statement.name)
        self.model = model
        self.statement = statement
        self.distances = distances_of(statement)
        self.sets: list[SetCells] = []
        self.records = 0

    def observe(self, batch: CellBatch) -> None:
        cells: SetCells = self.statement.checked(batch[self.column])
        self.records += len(cells)
        self.sets.append(cells.distinct()[0])

    def merge(self, other: FrontierCheck) -> None:
        self.records += other.records
        self.sets += other.sets

    def verdict(self) -> Verdict:
        design, size = self.statement.design, self.model.l
        assert design is not None
        distance = 0.0
        if self.records:
            sets = SetCells.concat(self.sets).distinct()[0]
            distance = frontier(sets.codes(design.eta), self.distances, size)
        return Verdict(
            model=self.model.model,
            column=self.column,
            required=0.0,
            achieved=distance,
            holds=self.records > 0,
            basis="the release alone",
            records=self.records,
            breaches=0,
            statement=f"every set has {size} values at mutual distance {distance:g} or more",
        )


def frontier(sets: NDArray, distances: NDArray[np.float64], size: int) -> float:
    """The largest d at which every set still has `size` values that far apart; 0 if some set has fewer values."""
    steps = np.unique(distances[distances > 0])
    low, high = 0, len(steps)
    while low < high:
        middle = (low + high) // 2
        found = largest_separated(sets, distances >= steps[middle] * (1 - 1e-12), size)
        if len(found) and found.min() >= size:
            low = middle + 1
        else:
            high = middle
    return float(steps[low - 1]) if low else 0.0
