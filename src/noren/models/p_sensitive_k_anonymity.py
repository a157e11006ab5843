"""p-sensitive k-anonymity (Truta and Vinay): large classes with several values."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.models.base import KNOWS_SHARES, Probes, Promise, SearchRule
from noren.models.class_check import ClassModel, Judged
from noren.models.histograms import Histograms
from noren.statements import Statement


class PSensitiveKAnonymity(ClassModel):
    """Every class has k records or more, with p different values among them.

    Like distinct l-diversity it counts values, not frequencies.
    """

    model: Literal["p-sensitive-k-anonymity"] = "p-sensitive-k-anonymity"
    probing: ClassVar[Probes] = ({"p": 2, "k": 2},)
    figure_ignores: ClassVar[frozenset[str]] = frozenset({"k"})
    parameter: ClassVar[str] = "p"
    p: int = Field(ge=2, description="Number of different values that every class must hold.")
    k: int = Field(ge=2, description="Smallest permitted number of records in a class.")

    @property
    def least_class_size(self) -> int:
        return self.k

    @property
    def search_rule(self) -> SearchRule:
        return SearchRule("p_sensitive", self.p, self.k)

    def judge_histograms(self, part: Histograms, column: Statement, overall: NDArray[np.float64]) -> Judged:
        return part.distinct_beside, (part.distinct_beside >= self.p) & (part.n >= self.k)

    def says(self, achieved: float, smallest: int) -> str:
        return (
            f"every class has at least {achieved:g} different values, "
            f"and the smallest class has {smallest} records (k = {self.k})"
        )

    def promise(self, names: str, sets: bool) -> Promise:
        return Promise(
            f"At least {self.k} records match every person, and they hold at least {self.p} different values of "
            f"{names}.",
            "It counts values, not frequencies: all but a few records may share one secret. " + KNOWS_SHARES,
        )
