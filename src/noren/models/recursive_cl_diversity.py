"""Recursive (c, l)-diversity (Machanavajjhala et al.): the most frequent value does not outweigh the rare ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.models.base import CLASS, KNOWS_SHARES, Model, Promise, SearchRule
from noren.models.class_check import ClassModel, Judged
from noren.models.histograms import Histograms
from noren.statements import Statement

MOST_L = 8
"""Up to which l the figure is measured."""
MARGIN = 1e-12
"""The inequality is strict: a product c * tail that rounding lifts above f1 must not pass."""


class RecursiveCLDiversity(ClassModel):
    """In every class f1 < c (f_l + f_{l+1} + ...), frequencies sorted from the largest.

    Whoever rules out l - 2 values still does not see the most frequent of the others stand out by more than c. It
    does not bound how sure somebody is who knows how common the values are elsewhere.
    """

    model: Literal["recursive-cl-diversity"] = "recursive-cl-diversity"
    limits_share: ClassVar[bool] = True
    parameter: ClassVar[str] = "c"
    higher_is_safer: ClassVar[bool] = False
    hopeless: ClassVar[float | None] = float("inf")
    c: float = Field(
        gt=0,
        allow_inf_nan=False,
        description="The most frequent value must have fewer than c times the records of all values from rank "
        "l on together.",
    )
    l: int = Field(ge=2, description="Rank from which values count as rare.")  # noqa: E741

    @property
    def search_rule(self) -> SearchRule:
        return SearchRule("recursive", self.c, self.l)

    @classmethod
    def probes(cls, statement: Statement | None) -> Sequence[Model]:
        if statement is None:
            return []
        return [cls(on=statement.name, c=1.0, l=size) for size in range(2, min(MOST_L, statement.d) + 1)]

    def judge_histograms(self, part: Histograms, column: Statement, overall: NDArray[np.float64]) -> Judged:
        top = part.ranked_masses[part.starts[:-1]]
        rank = np.arange(len(part.ranked_masses)) - part.starts[part.owner]
        tail = part.total(np.where(rank >= self.l - 1, part.ranked_masses, 0.0))
        reached = np.divide(top, tail, out=np.full(len(top), np.inf), where=tail > 0)
        return reached, top < self.c * tail * (1 - MARGIN)

    def says(self, achieved: float, smallest: int) -> str:
        if not np.isfinite(achieved):
            return f"some class has fewer than {self.l} values"
        return (
            f"the top value of a class has at most {achieved:.4g} times the records of its values from rank {self.l} on"
        )

    def promise(self, names: str, sets: bool) -> Promise:
        return Promise(
            f"{CLASS}, the commonest value of {names} stays below {self.c:g} times all values from rank {self.l} on "
            f"together. This also holds if an adversary can rule out {max(0, self.l - 2)} of the values.",
            KNOWS_SHARES,
        )
