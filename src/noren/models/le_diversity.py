"""(l, e)-diversity: l values stay possible that lie under different nodes at depth e of the hierarchy."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.errors import ModelDoesNotApply
from noren.models.base import Check, Evidence, Form, PublishedColumn
from noren.models.class_check import TOLERANCE, ClassModel, Judged
from noren.models.classes import Histograms
from noren.models.semantic_diversity import separation_check


class LEDiversity(ClassModel):
    """Values of at least l different subtrees at depth e below the root stay possible.

    A published set holds values of l subtrees; in a class of records no subtree makes up more than 1/l. It needs a
    tree. Values in neighbouring subtrees count as different however close they are; semantic diversity with a distance
    of its own avoids that.
    """

    model: Literal["le-diversity"] = "le-diversity"
    forms: ClassVar[tuple[Form, ...]] = ("set", "member", "value", "node", "group")
    l: int = Field(ge=2, description="Number of different subtrees that must stay possible.")  # noqa: E741
    e: int = Field(ge=1, description="Depth of the subtrees below the root (1: the root's children).")

    def check(self, column: PublishedColumn, evidence: Evidence) -> Check:
        if column.form not in ("set", "member"):
            check = super().check(column, evidence)
            self.subtrees(column)
            return check
        groups = self.subtrees(column)
        apart = groups[:, None] != groups[None, :]
        means = f"leaves values of {{achieved}} different subtrees at depth {self.e} possible"
        return separation_check(self, column, evidence, apart, means)

    def subtrees(self, column: PublishedColumn) -> NDArray[np.int64]:
        """For every base value the number of its subtree at depth e."""
        tree = column.hierarchy
        if tree is None or self.e > tree.height or len(tree.leaves) != column.d:
            raise ModelDoesNotApply(
                f"le-diversity of {column.name!r} needs a hierarchy of at least {self.e} levels below its root.",
                hint="Give the column a hierarchy, or choose a smaller e.",
            )
        return tree.groups(tree.height - self.e)[1]

    def judged(self, part: Histograms, column: PublishedColumn, overall: NDArray[np.float64]) -> Judged:
        trees = part.merged(self.subtrees(column))
        top = trees.largest(trees.mass)
        return part.n / top, top * self.l <= part.n * (1 + TOLERANCE)

    def says(self, achieved: float, smallest: int) -> str:
        return f"no subtree at depth {self.e} makes up more than 1/{achieved:.4g} of a class"
