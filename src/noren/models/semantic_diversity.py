"""(l, d)-semantic diversity: l values stay possible that are far apart in meaning (paper 003, definition 1)."""

from __future__ import annotations

from itertools import combinations
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.cells import Cells, SetCells
from noren.errors import ModelDoesNotApply
from noren.models.base import Check, Evidence, Form, Model, PublishedColumn, Verdict, checked_sets
from noren.models.shuffled import MemberCheck

TOLERANCE = 1e-9


class SemanticDiversity(Model):
    """Every published set holds l values at mutual distance d or more, so that its members mean different things.

    The distance is the column's own. Like every diversity of sets it does not bound an adversary who knows how common
    the values are. Coarsening preserves it: with the records of two classes each keeps its set, and with their
    shuffled members each value keeps its partners.
    """

    model: Literal["semantic-diversity"] = "semantic-diversity"
    forms: ClassVar[tuple[Form, ...]] = ("set", "member")
    coarsening_preserves: ClassVar[bool] = True
    l: int = Field(ge=2, description="Number of values that must stay possible and far apart.")  # noqa: E741
    d: float = Field(gt=0, description="Least distance between any two of them.")

    def check(self, column: PublishedColumn, evidence: Evidence) -> Check:
        if column.form not in ("set", "member"):
            raise self.refuse_form(column)
        if column.distances is None:
            raise ModelDoesNotApply(
                f"semantic-diversity of {column.name!r} needs a distance between its values.",
                hint='Publish the column with distance = "ordinal", "numeric", "tree" or a matrix.',
            )
        means = f"leaves {{achieved}} values possible at mutual distance {self.d:g} or more"
        compatible = column.distances >= self.d * (1 - TOLERANCE)
        return separation_check(self, column, evidence, compatible, means)


def separation_check(
    model: Model, column: PublishedColumn, evidence: Evidence, compatible: NDArray[np.bool_], means: str
) -> Check:
    """The check that fits the column's form: set by set, or class by class of shuffled members."""
    size = model.least_set_size
    if column.form == "set":
        return SeparationCheck(model, column, compatible, size, f"every record {means}")
    return MemberCheck(model, column, evidence.exact_columns(), compatible, size, f"every class {means}")


class SeparationCheck(Check):
    """Looks for l members of each set that are pairwise compatible, straight from the definition."""

    def __init__(
        self, model: Model, column: PublishedColumn, compatible: NDArray[np.bool_], size: int, means: str
    ) -> None:
        super().__init__(column.name)
        self.model = model
        self.d = column.d
        self.size = size
        self.means = means
        self.compatible = compatible
        self.worst = column.d
        self.records = 0
        self.breaches = 0

    def observe(self, cells: Cells) -> None:
        cells = checked_sets(cells, self.column, self.d)
        if not len(cells):
            return
        self.records += len(cells)
        if cells.is_mask:
            distinct, times = np.unique(cells.data, return_counts=True)
        else:
            distinct, times = np.unique(cells.data, axis=0, return_counts=True)
        sets = SetCells(cells.d, distinct)
        sizes = sets.sizes()
        for eta in np.unique(sizes).tolist():
            members = sizes == eta
            found = largest_separated(sets.take(np.flatnonzero(members)).codes(eta), self.compatible, self.size)
            self.worst = min(self.worst, int(found.min()))
            self.breaches += int(times[members][found < self.size].sum())

    def verdict(self) -> Verdict:
        achieved = self.worst if self.records else 0
        return Verdict(
            model=self.model.model,
            column=self.column,
            required=self.size,
            achieved=achieved,
            holds=self.records > 0 and self.breaches == 0,
            basis="the release alone",
            records=self.records,
            breaches=self.breaches,
            statement=self.means.format(achieved=achieved),
        )


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
