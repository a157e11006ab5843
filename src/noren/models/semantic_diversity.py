"""(l, d)-semantic diversity: l values with different meanings remain possible (paper 003, definition 1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.errors import ModelDoesNotApply
from noren.models.base import CLASS, KNOWS_SHARES, Check, Evidence, Model, Need, Promise
from noren.models.class_check import ClassCheck, ClassModel, Judged
from noren.models.classes import ClassFindings
from noren.models.histograms import Histograms
from noren.models.set_check import (
    MemberCheck,
    Separating,
    SeparationCheck,
    ValuesCheck,
    count_compatible,
    largest_separated,
)
from noren.models.verdict import Verdict
from noren.schema.column import Column
from noren.statements import CellBatch, SetCells, Statement

TOLERANCE = 1e-9
MOST_L = 5
"""Up to which l the distance is measured."""
LARGEST_SET = 16
"""Beyond so many members the subsets of a set are too many to try."""
CELLS = 1 << 22
"""Classes times values that are worked on at once."""


class SemanticDiversity(Separating, ClassModel):
    """Every published set holds l values at a pairwise distance of d or more: its members mean different things.

    The distance is the column's own. Of the members none is believed above 1/l (or `most`) by somebody who thought all
    values equally likely, whatever the design. In a class of records no value, taken together with those nearer to it
    than d, makes up more than 1/l (or `most`): then every value of the class lies among l values of it that are far
    apart. Like every diversity it does not bound an adversary who knows how common the values are. Coarsening preserves
    it: with the records of two classes each keeps its set, and with their shuffled members each value keeps its
    partners.
    """

    model: Literal["semantic-diversity"] = "semantic-diversity"
    l: int = Field(ge=2, description="Number of values with pairwise distance d that must remain possible.")  # noqa: E741
    d: float = Field(gt=0, description="Smallest distance between any two of these values.")

    @property
    def needs(self) -> frozenset[Need]:
        return frozenset({"distance"})

    def judge_sets(self, statement: Statement, evidence: Evidence) -> Check:
        compatible = self._compatible(statement)
        return SeparationCheck(self, statement, compatible, self.l, f"every record {self._means}")

    def judge_members(self, statement: Statement, evidence: Evidence) -> Check:
        compatible = self._compatible(statement)
        return MemberCheck(self, statement, evidence, compatible, self.l, f"every class {self._means}")

    def judge_classes(self, statement: Statement, evidence: Evidence) -> Check:
        check = super().judge_classes(statement, evidence)
        distances_of(statement)
        return check

    def judge_histograms(self, part: Histograms, column: Statement, overall: NDArray[np.float64]) -> Judged:
        compatible = self._compatible(column)
        top = largest_nearby(part, ~compatible)
        figures, good = part.n / top, top <= self.most_belief * part.n * (1 + TOLERANCE)
        if self.most is not None:
            for i in np.flatnonzero(good & (figures < self.l)).tolist():
                values = part.value[part.starts[i] : part.starts[i + 1]]
                figures[i] = count_compatible(values.tolist(), compatible, self.l)
            good &= figures >= self.l * (1 - TOLERANCE)
        return figures, good

    def says(self, achieved: float, smallest: int) -> str:
        if self.most is not None:
            return f"{achieved:.4g} values of every class stay possible at a pairwise distance of {self.d:g} or more"
        return f"no value, together with values nearer than {self.d:g}, makes up more than 1/{achieved:.4g} of a class"

    def left_out_checks(self, evidence: Evidence) -> list[Check]:
        """Return the check that every value of the suppressed people is in a set of l of their values that are far
        apart."""
        out: list[Check] = []
        for name in self.on:
            statement = evidence.columns[name]
            compatible = self._compatible(statement)

            def count(values: NDArray[np.int64], apart: NDArray[np.bool_] = compatible) -> int:
                return count_compatible(values.tolist(), apart, self.l)

            out.append(ValuesCheck(self, statement, count, self.l, f"each of them {self._means}"))
        return out

    @property
    def _means(self) -> str:
        return f"leaves {{achieved}} values possible at a pairwise distance of {self.d:g} or more"

    def _compatible(self, statement: Statement) -> NDArray[np.bool_]:
        return distances_of(statement) >= self.d * (1 - TOLERANCE)

    def separation(self, column: Column) -> tuple[NDArray[np.float64], float]:
        assert column.distances is not None
        return column.distances, self.d

    @classmethod
    def probes(cls, statement: Statement | None) -> Sequence[Model]:
        if statement is None or not statement.lists_values or statement.column.distances is None:
            return []
        largest = statement.d if statement.design is None else statement.design.eta
        if statement.design is not None and largest > LARGEST_SET:
            return []
        return [cls(on=statement.name, l=size, d=1.0) for size in range(2, min(MOST_L, largest) + 1)]

    @property
    def measured_parameter(self) -> str:
        return "d"

    def measuring(self, evidence: Evidence) -> Check:
        (check,) = self.checks(evidence)
        if isinstance(check, ClassCheck):
            return ClassFrontierCheck(self, check.column, check.classes, check.published, check.overall)
        statement = evidence.columns[check.column]
        if statement.rows_per_record > 1:
            return MemberFrontierCheck(self, statement, evidence, self._compatible(statement), self.l, check.means)  # type: ignore[attr-defined]
        if statement.design is None:
            raise self.refuses(statement)
        return FrontierCheck(self, statement)

    def promise(self, names: str, sets: bool) -> Promise:
        if not sets:
            return Promise(
                f"{CLASS}, no value of {names}, together with all values nearer than {self.d:g}, has a share above "
                f"{self.most_belief:.3g}, so that {self.l} values with different meanings remain possible.",
                "It uses the distance that the policy declares; other relations between values are not considered. "
                + KNOWS_SHARES,
            )
        return Promise(
            f"For every person at least {self.l} values of {names} remain possible, any two at a distance of "
            f"{self.d:g} or more; somebody who thinks all values equally likely believes none of them with more "
            f"than {self.most_belief:.3g}.",
            "It uses the distance that the policy declares; other relations between values are not considered. "
            + KNOWS_SHARES,
        )


def largest_nearby(part: Histograms, near: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return for every class the largest mass of a value together with all values near it."""
    from scipy.sparse import csr_array

    table, masses = near.astype(np.float64), csr_array((part.mass, part.value, part.starts), (len(part), len(near)))
    step, found = max(1, CELLS // len(near)), [np.zeros(0)]
    for begin in range(0, len(part), step):
        around = masses[begin : begin + step] @ table
        first, last = part.starts[begin], part.starts[min(begin + step, len(part))]
        found.append(around[part.owner[first:last] - begin, part.value[first:last]])
    return part.largest(np.concatenate(found))


def distances_of(statement: Statement) -> NDArray[np.float64]:
    """Return the published distances between a column's values."""
    found = statement.column.distances
    if found is None:
        raise ModelDoesNotApply(
            f"semantic-diversity of {statement.name!r} needs a distance between its values.",
            hint='Publish the column with distance = "ordinal", "numeric", "tree" or a matrix.',
        )
    return found


class FrontierCheck(Check):
    """Measures the largest d at which every set still has l values that far apart."""

    def __init__(self, model: SemanticDiversity, statement: Statement) -> None:
        super().__init__(model, statement.name)
        self.statement = statement
        self.distances = distances_of(statement)
        self.sets: list[SetCells] = []

    def observe(self, batch: CellBatch) -> None:
        cells: SetCells = self.statement.check_cells(batch[self.column])
        self.records += len(cells)
        self.sets.append(cells.distinct()[0])

    def merge(self, other: Self) -> None:
        super().merge(other)
        self.sets += other.sets

    def verdict(self) -> Verdict:
        design, size = self.statement.design, self.model.l
        assert design is not None
        distance = 0.0
        if self.records:
            sets = SetCells.concat(self.sets).distinct()[0]
            distance = frontier(sets.codes(design.eta), self.distances, size)
        statement = f"every set has {size} values at a pairwise distance of {distance:g} or more"
        return self.conclude(distance, self.records > 0, "the release alone", self.records, 0, statement, required=0.0)


class ClassFrontierCheck(ClassCheck):
    """Measures the largest d at which no class has a value that makes up more than 1/l together with nearer ones."""

    def findings(self) -> ClassFindings:
        assert self.published is not None
        model = self.model

        def reaches(step: float) -> bool:
            self.model = model.model_copy(update={"d": step})
            return not ClassCheck.findings(self).breaches

        reached = largest_step(distances_of(self.published), reaches)
        self.model = model
        found = super().findings()
        return replace(found, achieved=reached, breaches=0, short=0, shortfalls=())

    def settle_findings(self, found: ClassFindings) -> Verdict:
        text = f"no value makes up more than 1/{self.model.required:g} of a class, with those nearer than"
        return replace(super().settle_findings(found), statement=f"{text} {found.achieved:g}", required=0.0)


class MemberFrontierCheck(MemberCheck):
    """Measures the largest d at which every class of shuffled members still has l values that far apart."""

    def verdict(self) -> Verdict:
        distances = distances_of(self.statement)

        def reaches(step: float) -> bool:
            self.compatible = distances >= step * (1 - TOLERANCE)
            return MemberCheck.verdict(self).achieved >= self.size

        found = largest_step(distances, reaches)
        statement = f"every class has {self.size} values at a pairwise distance of {found:g} or more"
        return replace(super().verdict(), achieved=found, statement=statement, required=0.0)


def largest_step(distances: NDArray[np.float64], reaches: Callable[[float], bool]) -> float:
    """Return the largest distance that is reached, if all smaller ones are; 0 if none is."""
    steps = np.unique(distances[distances > 0])
    low, high = 0, len(steps)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if reaches(float(steps[middle])) else (low, middle)
    return float(steps[low - 1]) if low else 0.0


def frontier(sets: NDArray, distances: NDArray[np.float64], size: int) -> float:
    """Return the largest d at which every set still has `size` values that far apart; 0 if some set has fewer
    values."""

    def reaches(step: float) -> bool:
        found = largest_separated(sets, distances >= step * (1 - 1e-12), size)
        return bool(len(found) and found.min() >= size)

    return largest_step(distances, reaches)
