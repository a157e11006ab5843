"""Distinct l-diversity: every class holds at least l different values."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.models.base import CLASS, KNOWS_SHARES, Check, Evidence, Probes, Promise, SearchRule
from noren.models.class_check import ClassModel, Judged
from noren.models.histograms import Histograms
from noren.models.set_check import SetSizeCheck
from noren.statements import Statement


class DistinctLDiversity(ClassModel):
    """At least l values stay possible for somebody who knows the other columns.

    It counts values, not how often they occur: a class in which 99 of 100 records share one secret satisfies l = 2.
    A generalised record counts for every value under its node.
    """

    model: Literal["distinct-l-diversity"] = "distinct-l-diversity"
    probing: ClassVar[Probes] = ({"l": 2},)
    counts_values: ClassVar[bool] = True
    l: int = Field(ge=2, description="Number of different values that every class must hold.")  # noqa: E741

    def judge_sets(self, statement: Statement, evidence: Evidence) -> Check:
        return SetSizeCheck(self, statement, self.l, "every record leaves at least {achieved} values possible")

    @property
    def search_rule(self) -> SearchRule:
        return SearchRule("distinct", self.l)

    def judge_histograms(self, part: Histograms, column: Statement, overall: NDArray[np.float64]) -> Judged:
        return part.distinct_beside, part.distinct_beside >= self.l

    def says(self, achieved: float, smallest: int) -> str:
        return f"every class holds at least {achieved:g} different values"

    def promise(self, names: str, sets: bool) -> Promise:
        return Promise(
            f"{'For every person' if sets else CLASS}, at least {self.l} different values of {names} remain possible.",
            "It counts values, not frequencies: 99 of 100 records may share one secret. " + KNOWS_SHARES,
        )
