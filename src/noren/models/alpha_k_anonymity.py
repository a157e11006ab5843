"""(alpha, k)-anonymity (Wong et al.): large classes in which no value is too frequent."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.models.base import KNOWS_SHARES, Probes, Promise, SearchRule
from noren.models.class_check import TOLERANCE, ClassModel, Judged
from noren.models.histograms import Histograms
from noren.statements import Statement


class AlphaKAnonymity(ClassModel):
    """Every class has k records or more, and no value makes up more than alpha of them.

    It limits both how well a person can be found and how certain a secret is. The same limit applies to frequent and
    rare values.
    """

    model: Literal["alpha-k-anonymity"] = "alpha-k-anonymity"
    probing: ClassVar[Probes] = ({"alpha": 0.5, "k": 1},)
    limits_share: ClassVar[bool] = True
    counts_holders: ClassVar[bool] = True
    figure_ignores: ClassVar[frozenset[str]] = frozenset({"k"})
    parameter: ClassVar[str] = "alpha"
    higher_is_safer: ClassVar[bool] = False
    alpha: float = Field(gt=0, lt=1, description="Largest permitted share of one value in a class.")
    k: int = Field(ge=1, description="Smallest permitted number of records in a class.")

    @property
    def least_class_size(self) -> int:
        return self.k

    @property
    def largest_share(self) -> float:
        return self.alpha

    @property
    def search_rule(self) -> SearchRule:
        return SearchRule("alpha_k", self.alpha, self.k)

    def judge_histograms(self, part: Histograms, column: Statement, overall: NDArray[np.float64]) -> Judged:
        top = part.largest(part.mass)
        return top / part.n, (top <= self.alpha * part.n * (1 + TOLERANCE)) & (part.n >= self.k)

    def says(self, achieved: float, smallest: int) -> str:
        return (
            f"no value makes up more than {achieved:.4g} of a class, "
            f"and the smallest class has {smallest} records (k = {self.k})"
        )

    def promise(self, names: str, sets: bool) -> Promise:
        return Promise(
            f"At least {self.k} records match every person, and no value of {names} has a share above "
            f"{self.alpha:.4g} among them.",
            "All values have the same upper limit, also rare or especially sensitive ones. " + KNOWS_SHARES,
        )
