"""Distinct l-diversity: every class holds at least l different values."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.models.base import Check, Evidence, Form, PublishedColumn, SetSizeCheck
from noren.models.class_check import ClassModel, Judged
from noren.models.classes import Histograms


class DistinctLDiversity(ClassModel):
    """At least l values stay possible for whoever knows the other columns.

    It counts values, not how often they occur: a class in which 99 of 100 records share one secret satisfies l = 2.
    A generalised record counts for every value under its node.
    """

    model: Literal["distinct-l-diversity"] = "distinct-l-diversity"
    forms: ClassVar[tuple[Form, ...]] = ("set", "value", "node", "group")
    l: int = Field(ge=2, description="Number of different values that every class must hold.")  # noqa: E741

    def check(self, column: PublishedColumn, evidence: Evidence) -> Check:
        if column.form == "set":
            return SetSizeCheck(self, column, self.l, "every record leaves at least {achieved} values possible")
        return super().check(column, evidence)

    def judged(self, part: Histograms, column: PublishedColumn, overall: NDArray[np.float64]) -> Judged:
        return part.distinct, part.distinct >= self.l

    def says(self, achieved: float, smallest: int) -> str:
        return f"every class holds at least {achieved:g} different values"
