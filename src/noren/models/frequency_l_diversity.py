"""Frequency (l1, ..., lq)-diversity: no value makes up more than 1/l of a class (paper 000, definitions 10-12)."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.models.base import Check, Evidence, Form, PublishedColumn, SetSizeCheck
from noren.models.class_check import TOLERANCE, ClassModel, Judged
from noren.models.classes import Histograms


class FrequencyLDiversity(ClassModel):
    """At least l values stay possible for the column, however well the other columns are known.

    It counts how often values occur inside a class. It does not bound an adversary who also knows how common the
    values are: inside a set the posterior odds are the prior odds.
    """

    model: Literal["frequency-l-diversity"] = "frequency-l-diversity"
    forms: ClassVar[tuple[Form, ...]] = ("set", "value", "node", "group")
    l: int = Field(ge=2, description="No value may make up more than 1/l of a class.")  # noqa: E741

    def check(self, column: PublishedColumn, evidence: Evidence) -> Check:
        if column.form == "set":
            return SetSizeCheck(self, column, self.l, "every record leaves at least {achieved} values possible")
        return super().check(column, evidence)

    def judged(self, part: Histograms, column: PublishedColumn, overall: NDArray[np.float64]) -> Judged:
        top = part.largest(part.mass)
        return part.n / top, top * self.l <= part.n * (1 + TOLERANCE)

    def says(self, achieved: float, smallest: int) -> str:
        return f"no value makes up more than 1/{achieved:.4g} of a class"
