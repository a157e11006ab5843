"""Frequency (l1, ..., lq)-diversity: no value makes up more than 1/l of a class (paper 000, definitions 10-12)."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.models.base import CLASS, KNOWS_SHARES, Check, Evidence, Probes, Promise, SearchRule
from noren.models.class_check import TOLERANCE, ClassModel, Judged
from noren.models.histograms import Histograms
from noren.models.set_check import EvenSetCheck
from noren.statements import Statement


class FrequencyLDiversity(ClassModel):
    """At least l values of the column stay possible, even if the other columns are known.

    In a class it counts how often values occur. It does not limit an adversary who also knows the overall frequencies:
    within a set the posterior odds equal the prior odds.
    """

    model: Literal["frequency-l-diversity"] = "frequency-l-diversity"
    probing: ClassVar[Probes] = ({"l": 2},)
    limits_share: ClassVar[bool] = True
    counts_holders: ClassVar[bool] = True
    counts_values: ClassVar[bool] = True
    l: int = Field(ge=2, description="No value may have a share above 1/l in a class.")  # noqa: E741

    def judge_sets(self, statement: Statement, evidence: Evidence) -> Check:
        return EvenSetCheck(self, statement, self.l, "every record leaves at least {achieved} values possible")

    @property
    def most_belief(self) -> float:
        return 1 / self.l

    @property
    def largest_share(self) -> float:
        return 1 / self.l

    @property
    def search_rule(self) -> SearchRule:
        return SearchRule("frequency", self.l)

    def judge_histograms(self, part: Histograms, column: Statement, overall: NDArray[np.float64]) -> Judged:
        top = part.largest(part.mass)
        return part.n / top, top * self.l <= part.n * (1 + TOLERANCE)

    def says(self, achieved: float, smallest: int) -> str:
        return f"no value makes up more than 1/{achieved:.4g} of a class"

    def promise(self, names: str, sets: bool) -> Promise:
        if sets:
            return Promise(
                f"For every person at least {self.l} values of {names} remain possible, so somebody who thinks all "
                f"values equally likely believes none with more than 1/{self.l}.",
                "It limits which values can be excluded, not beliefs: somebody who knows the frequencies will "
                "believe a common value rather than the rare ones in the same set.",
            )
        return Promise(f"{CLASS}, no value of {names} makes up more than 1/{self.l}.", KNOWS_SHARES)
