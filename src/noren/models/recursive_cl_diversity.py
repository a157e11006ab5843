"""Recursive (c, l)-diversity (Machanavajjhala et al.): the most frequent value does not outweigh the rare ones."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.models.base import PublishedColumn
from noren.models.class_check import ClassModel, Judged
from noren.models.classes import Histograms

MARGIN = 1e-12
"""The inequality is strict: a product c * tail that rounding lifts above f1 must not pass."""


class RecursiveCLDiversity(ClassModel):
    """In every class f1 < c (f_l + f_{l+1} + ...), frequencies sorted from the largest.

    Whoever rules out l - 2 values still does not see the most frequent of the others stand out by more than c. It
    does not bound how sure somebody is who knows how common the values are elsewhere.
    """

    model: Literal["recursive-cl-diversity"] = "recursive-cl-diversity"
    parameter: ClassVar[str] = "c"
    higher_is_safer: ClassVar[bool] = False
    c: float = Field(
        gt=0, allow_inf_nan=False, description="The top value stays below c times the l-th and rarer values together."
    )
    l: int = Field(ge=2, description="Rank from which values count as the rare ones.")  # noqa: E741

    def judged(self, part: Histograms, column: PublishedColumn, overall: NDArray[np.float64]) -> Judged:
        top = part.ranked[part.starts[:-1]]
        rank = np.arange(len(part.ranked)) - part.starts[part.owner]
        tail = part.total(np.where(rank >= self.l - 1, part.ranked, 0.0))
        reached = np.divide(top, tail, out=np.full(len(top), np.inf), where=tail > 0)
        return reached, top < self.c * tail * (1 - MARGIN)

    def says(self, achieved: float, smallest: int) -> str:
        return f"the top value of a class is at most {achieved:.4g} times its values from rank {self.l} on together"
