"""delta-disclosure privacy (Brickell and Shmatikov): every class resembles the whole release in every value."""

from __future__ import annotations

from math import exp
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.models.base import Probes, Promise, SearchRule
from noren.models.class_check import ClassModel, Judged
from noren.models.histograms import Histograms
from noren.statements import Statement


class DeltaDisclosure(ClassModel):
    """The share of every value in every class differs from its share in the whole by a factor below exp(delta).

    The strictest of the models that compare with the whole: every value of the release must occur in every class, so
    neither having nor not having a value can be learned.
    """

    model: Literal["delta-disclosure"] = "delta-disclosure"
    probing: ClassVar[Probes] = ({"delta": 1.0},)
    parameter: ClassVar[str] = "delta"
    higher_is_safer: ClassVar[bool] = False
    relative: ClassVar[bool] = True
    delta: float = Field(
        gt=0, allow_inf_nan=False, description="Largest permitted |ln(share in the class / share in the whole table)|."
    )

    @property
    def search_rule(self) -> SearchRule:
        return SearchRule("delta", self.delta)

    def judge_histograms(self, part: Histograms, column: Statement, overall: NDArray[np.float64]) -> Judged:
        change = part.largest(np.abs(np.log(part.share / overall[part.value])))
        change = np.where(part.distinct == np.count_nonzero(overall), change, np.inf)
        return change, change < self.delta

    def says(self, achieved: float, smallest: int) -> str:
        if np.isinf(achieved):
            return "some class lacks a value that other classes have"
        return f"no value's share changes by more than a factor of exp({achieved:.4g}) in a class"

    def promise(self, names: str, sets: bool) -> Promise:
        return Promise(
            f"Among the records that match a person, the frequency of every value of {names} differs from that in "
            f"the whole release by a factor below {exp(self.delta):.4g}.",
            "It compares with the release as a whole, so what the overall frequencies disclose about everybody is "
            "not limited.",
        )
