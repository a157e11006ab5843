"""(alpha, k)-anonymity (Wong et al.): large classes in which no value is too frequent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.models.base import KNOWS_SHARES, Model, Promise, SearchRule
from noren.models.class_check import TOLERANCE, ClassModel, Judged
from noren.models.histograms import Histograms
from noren.statements import Statement


class AlphaKAnonymity(ClassModel):
    """Every class has k records or more, and no value makes up more than alpha of them.

    It bounds both how well a person is found and how sure a secret is. Values are not weighed by how common they are.
    """

    model: Literal["alpha-k-anonymity"] = "alpha-k-anonymity"
    limits_share: ClassVar[bool] = True
    counts_holders: ClassVar[bool] = True
    figure_ignores: ClassVar[frozenset[str]] = frozenset({"k"})
    parameter: ClassVar[str] = "alpha"
    higher_is_safer: ClassVar[bool] = False
    alpha: float = Field(gt=0, lt=1, description="Largest permitted share of one value in a class.")
    k: int = Field(ge=1, description="Smallest permitted class of records.")

    @property
    def least_class_size(self) -> int:
        return self.k

    @property
    def largest_share(self) -> float:
        return self.alpha

    @property
    def search_rule(self) -> SearchRule:
        return SearchRule("alpha_k", self.alpha, self.k)

    @classmethod
    def probes(cls, statement: Statement | None) -> Sequence[Model]:
        return [cls(on=statement.name, alpha=0.5, k=1)] if statement is not None else []

    def judged(self, part: Histograms, column: Statement, overall: NDArray[np.float64]) -> Judged:
        top = part.largest(part.mass)
        return top / part.n, (top <= self.alpha * part.n * (1 + TOLERANCE)) & (part.n >= self.k)

    def says(self, achieved: float, smallest: int) -> str:
        return (
            f"no value makes up more than {achieved:.4g} of a class, "
            f"and the smallest class has {smallest} records (k = {self.k})"
        )

    def promise(self, names: str, sets: bool) -> Promise:
        return Promise(
            f"At least {self.k} records could be a person's, and no value of {names} makes up more than "
            f"{self.alpha:.4g} of them.",
            "All values have the same ceiling, however rare or delicate they are. " + KNOWS_SHARES,
        )
