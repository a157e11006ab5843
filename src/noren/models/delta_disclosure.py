"""delta-disclosure privacy (Brickell and Shmatikov): every class resembles the whole release in every value."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.models.base import Model, Promise, SearchRule
from noren.models.class_check import ClassModel, Judged
from noren.models.histograms import Histograms
from noren.statements import Statement


class DeltaDisclosure(ClassModel):
    """The share of every value in every class differs from its share in the whole by a factor below exp(delta).

    The strictest of the models that compare with the whole: every value of the release must occur in every class, so
    neither having nor not having a value can be learned.
    """

    model: Literal["delta-disclosure"] = "delta-disclosure"
    parameter: ClassVar[str] = "delta"
    higher_is_safer: ClassVar[bool] = False
    relative: ClassVar[bool] = True
    delta: float = Field(gt=0, allow_inf_nan=False, description="Bound on |ln(share in class / share in the whole)|.")

    @property
    def search_rule(self) -> SearchRule:
        return SearchRule("delta", self.delta)

    @classmethod
    def probes(cls, statement: Statement | None) -> Sequence[Model]:
        return [cls(on=statement.name, delta=1.0)] if statement is not None else []

    def judged(self, part: Histograms, column: Statement, overall: NDArray[np.float64]) -> Judged:
        change = part.largest(np.abs(np.log(part.share / overall[part.value])))
        change = np.where(part.distinct == np.count_nonzero(overall), change, np.inf)
        return change, change < self.delta

    def says(self, achieved: float, smallest: int) -> str:
        if np.isinf(achieved):
            return "some class lacks a value that others hold"
        return f"no value's share changes by more than a factor of exp({achieved:.4g}) in a class"

    def promise(self, names: str, sets: bool) -> Promise:
        return Promise(
            f"Seeing the records that could be a person's makes no value of {names} more likely or less likely, by a "
            f"factor of {exp(self.delta):.4g} or more, than it is in the whole release.",
            "It compares with the release as a whole: what the whole release tells about everybody is not limited.",
        )
