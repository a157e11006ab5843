"""(l, e)-diversity: l values stay possible that lie under different nodes at depth e of the hierarchy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.errors import ModelDoesNotApply, NorenError
from noren.models.base import CLASS, KNOWS_SHARES, Check, Evidence, Model, Need, Promise, SearchRule
from noren.models.class_check import TOLERANCE, ClassModel, Judged
from noren.models.histograms import Histograms
from noren.models.set_check import MemberCheck, Separating, SeparationCheck
from noren.schema.column import Column
from noren.statements import Statement


class LEDiversity(Separating, ClassModel):
    """Values of at least l different subtrees at depth e below the root stay possible.

    A published set holds values of l subtrees; in a class of records no subtree makes up more than 1/l. It needs a
    tree. Values in neighbouring subtrees count as different however close they are; semantic diversity with a distance
    of its own avoids that.
    """

    model: Literal["le-diversity"] = "le-diversity"
    figure_ignores: ClassVar[frozenset[str]] = frozenset({"l", "most"})
    l: int = Field(ge=2, description="Number of different subtrees that must stay possible.")  # noqa: E741
    e: int = Field(ge=1, description="Depth of the subtrees below the root (1: the root's children).")

    @property
    def needs(self) -> frozenset[Need]:
        return frozenset({"tree"})

    @property
    def search_rule(self) -> SearchRule:
        return SearchRule("subtrees", self.l, self.e)

    @classmethod
    def probes(cls, statement: Statement | None) -> Sequence[Model]:
        tree = None if statement is None else statement.column.tree
        if statement is None or tree is None:
            return []
        return [cls(on=statement.name, l=2, e=depth) for depth in range(1, tree.height + 1)]

    def judge_classes(self, statement: Statement, evidence: Evidence) -> Check:
        check = super().judge_classes(statement, evidence)
        self.subtrees(statement)
        return check

    def judge_sets(self, statement: Statement, evidence: Evidence) -> Check:
        return SeparationCheck(self, statement, self._apart(statement), self.l, f"every record {self._means}")

    def judge_members(self, statement: Statement, evidence: Evidence) -> Check:
        return MemberCheck(self, statement, evidence, self._apart(statement), self.l, f"every class {self._means}")

    @property
    def _means(self) -> str:
        return f"leaves values of {{achieved}} different subtrees at depth {self.e} possible"

    def _apart(self, statement: Statement) -> NDArray[np.bool_]:
        groups = self.subtrees(statement)
        return np.asarray(groups[:, None] != groups[None, :])

    def separation(self, column: Column) -> tuple[NDArray[np.float64], float]:
        tree = column.tree
        if tree is None or self.e > tree.height:
            levels = 0 if tree is None else tree.height
            raise NorenError(
                f"le-diversity with e = {self.e} needs a hierarchy with {self.e} levels below its root; this one "
                f"has {levels}.",
                hint="Give the column a deeper hierarchy, or choose a smaller e.",
            )
        groups = tree.groups(tree.height - self.e)[1]
        return np.asarray((groups[:, None] != groups[None, :]).astype(float)), 1.0

    def subtrees(self, statement: Statement) -> NDArray[np.int64]:
        """Return for every base value the number of its subtree at depth e."""
        tree = statement.column.tree
        if tree is None or self.e > tree.height or len(tree.leaves) != statement.d:
            raise ModelDoesNotApply(
                f"le-diversity of {statement.name!r} needs a hierarchy of at least {self.e} levels below its root.",
                hint="Give the column a hierarchy, or choose a smaller e.",
            )
        return tree.groups(tree.height - self.e)[1]

    def judge_histograms(self, part: Histograms, column: Statement, overall: NDArray[np.float64]) -> Judged:
        trees = part.merge_values(self.subtrees(column))
        top = trees.largest(trees.mass)
        return part.n / top, top * self.l <= part.n * (1 + TOLERANCE)

    def says(self, achieved: float, smallest: int) -> str:
        return f"no subtree at depth {self.e} makes up more than 1/{achieved:.4g} of a class"

    def promise(self, names: str, sets: bool) -> Promise:
        told = (
            f"For every person values of {names} from at least {self.l} different branches of its hierarchy remain "
            "possible"
            if sets
            else f"{CLASS}, no branch of the hierarchy of {names} makes up more than 1/{self.l}"
        )
        return Promise(
            f"{told} (branches at depth {self.e}).",
            "Values of two branches count as different, however close in meaning they are. " + KNOWS_SHARES,
        )
