"""m-invariance (Xiao, Tao 2007): people who are in several releases have the same m possible secrets in all of them."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.models.base import CLASS, KNOWS_SHARES, Promise
from noren.models.class_check import TOLERANCE, ClassModel, Judged
from noren.models.histograms import Histograms
from noren.statements import Statement


class MInvariance(ClassModel):
    """Every class has at least m records, all with different secrets, and a person keeps the same possible secrets in
    every release.

    A release alone shows the first half. The second is what the register of the secret is asked before a release is
    made, and what `noren audit --second` measures between two of them.
    """

    model: Literal["m-invariance"] = "m-invariance"
    parameter: ClassVar[str] = "m"
    coarsening_preserves: ClassVar[bool] = False
    invariant: ClassVar[bool] = True
    judges_rows: ClassVar[bool] = False  # a person's rows repeat their value
    m: int = Field(ge=2, description="Number of different values that stay possible for every person in all releases.")

    @property
    def met_by(self) -> str:
        return "m-invariance"

    @property
    def least_set_size(self) -> int:
        return self.m

    @property
    def least_class_size(self) -> int:
        return 1

    def judge_histograms(self, part: Histograms, column: Statement, overall: NDArray[np.float64]) -> Judged:
        single = part.largest(part.mass) <= 1 + TOLERANCE
        figures = np.where(single, np.minimum(part.distinct_beside, part.n), 0)
        return figures, figures >= self.m

    def says(self, achieved: float, smallest: int) -> str:
        if achieved < 1:
            return "some class holds a value more than once"
        return f"every class has at least {achieved:g} different values, each once"

    def promise(self, names: str, sets: bool) -> Promise:
        return Promise(
            f"{CLASS}, at least {self.m} different values of {names} occur, each once. People who are in an earlier "
            "release of the register keep the same possible values, so the intersection of both releases "
            "discloses nothing new.",
            "It does not cover releases that are not in the register. " + KNOWS_SHARES,
        )
