"""m-invariance (Xiao, Tao 2007): who is in several releases stays among the same m secrets in all of them."""

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
    """Every class has at least m records, all with different secrets, and people keep the secrets they were among.

    A release alone shows the first half. The second is what the register of the secret is asked before a release is
    made, and what `noren audit --second` measures between two of them.
    """

    model: Literal["m-invariance"] = "m-invariance"
    parameter: ClassVar[str] = "m"
    coarsening_preserves: ClassVar[bool] = False
    invariant: ClassVar[bool] = True
    m: int = Field(ge=2, description="Number of different values that every person stays among.")

    @property
    def met_by(self) -> str:
        return "m-invariance"

    @property
    def least_set_size(self) -> int:
        return self.m

    @property
    def least_class_size(self) -> int:
        return 1

    def judged(self, part: Histograms, column: Statement, overall: NDArray[np.float64]) -> Judged:
        single = part.largest(part.mass) <= 1 + TOLERANCE
        figures = np.where(single, np.minimum(part.distinct_beside, part.n), 0)
        return figures, figures >= self.m

    def says(self, achieved: float, smallest: int) -> str:
        if achieved < 1:
            return "some class holds a value more than once"
        return f"every class holds at least {achieved:g} different values, each once"

    def promise(self, names: str, sets: bool) -> Promise:
        return Promise(
            f"{CLASS}, at least {self.m} different values of {names} occur, each once, and whoever is in an earlier "
            "release that the register knows stays among the same values, so that intersecting both tells nothing new.",
            "It does not hold against releases that the register does not know. " + KNOWS_SHARES,
        )
