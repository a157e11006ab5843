"""Frequency (l1, ..., lq)-diversity: no value makes up more than 1/l of a class (paper 000, definitions 10-12)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.models.base import CLASS, KNOWS_SHARES, Check, Evidence, Model, Promise, SearchRule
from noren.models.class_check import TOLERANCE, ClassModel, Judged
from noren.models.histograms import Histograms
from noren.models.set_check import SetSizeCheck
from noren.statements import Statement


class FrequencyLDiversity(ClassModel):
    """At least l values stay possible for the column, however well the other columns are known.

    It counts how often values occur inside a class. It does not bound an adversary who also knows how common the
    values are: inside a set the posterior odds are the prior odds.
    """

    model: Literal["frequency-l-diversity"] = "frequency-l-diversity"
    limits_share: ClassVar[bool] = True
    counts_holders: ClassVar[bool] = True
    counts_values: ClassVar[bool] = True
    l: int = Field(ge=2, description="No value may make up more than 1/l of a class.")  # noqa: E741

    def judge_sets(self, statement: Statement, evidence: Evidence) -> Check:
        return SetSizeCheck(self, statement, self.l, "every record leaves at least {achieved} values possible")

    @property
    def largest_share(self) -> float:
        return 1 / self.l

    @property
    def search_rule(self) -> SearchRule:
        return SearchRule("frequency", self.l)

    @classmethod
    def probes(cls, statement: Statement | None) -> Sequence[Model]:
        return [cls(on=statement.name, l=2)] if statement is not None else []

    def judged(self, part: Histograms, column: Statement, overall: NDArray[np.float64]) -> Judged:
        top = part.largest(part.mass)
        return part.n / top, top * self.l <= part.n * (1 + TOLERANCE)

    def says(self, achieved: float, smallest: int) -> str:
        return f"no value makes up more than 1/{achieved:.4g} of a class"

    def promise(self, names: str, sets: bool) -> Promise:
        if sets:
            return Promise(
                f"For every person at least {self.l} values of {names} remain possible, so that somebody who thinks "
                f"all values equally likely believes none of them with more than 1/{self.l}.",
                "It limits what is ruled out, not what is believed: a common value that stands beside rare ones is the "
                "likely one for somebody who knows how common the values are.",
            )
        return Promise(f"{CLASS}, no value of {names} makes up more than 1/{self.l}.", KNOWS_SHARES)
