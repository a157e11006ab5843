"""p-sensitive k-anonymity (Truta and Vinay): large classes with several values."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.models.base import PublishedColumn
from noren.models.class_check import ClassModel, Judged
from noren.models.classes import Histograms


class PSensitiveKAnonymity(ClassModel):
    """Every class has k records or more, with p different values among them.

    Like distinct diversity it counts values and not how often they occur.
    """

    model: Literal["p-sensitive-k-anonymity"] = "p-sensitive-k-anonymity"
    parameter: ClassVar[str] = "p"
    p: int = Field(ge=2, description="Number of different values that every class must hold.")
    k: int = Field(ge=2, description="Smallest permitted class of records.")

    def judged(self, part: Histograms, column: PublishedColumn, overall: NDArray[np.float64]) -> Judged:
        return part.distinct, (part.distinct >= self.p) & (part.n >= self.k)

    def says(self, achieved: float, smallest: int) -> str:
        return (
            f"every class holds at least {achieved:g} different values, "
            f"and the smallest class has {smallest} records (k = {self.k})"
        )
