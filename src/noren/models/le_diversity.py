"""(l, e)-diversity: l values stay possible that lie under different nodes at depth e of the hierarchy."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from noren.errors import ModelDoesNotApply
from noren.models.base import Check, Evidence, Model, PublishedColumn
from noren.models.semantic_diversity import separation_check


class LEDiversity(Model):
    """Every published set holds values of at least l different subtrees at depth e below the root.

    It needs a tree. Values in neighbouring subtrees count as different however close they are; semantic diversity with
    a distance of its own avoids that.
    """

    model: Literal["le-diversity"] = "le-diversity"
    l: int = Field(ge=2, description="Number of different subtrees that must stay possible.")  # noqa: E741
    e: int = Field(ge=1, description="Depth of the subtrees below the root (1: the root's children).")

    def check(self, column: PublishedColumn, evidence: Evidence) -> Check:
        if column.form not in ("set", "member"):
            raise self.refuse_form(column)
        if column.hierarchy is None or self.e > column.hierarchy.height:
            raise ModelDoesNotApply(
                f"le-diversity of {column.name!r} needs a hierarchy of at least {self.e} levels below its root.",
                hint="Give the column a hierarchy, or choose a smaller e.",
            )
        _, groups = column.hierarchy.groups(column.hierarchy.height - self.e)
        apart = groups[:, None] != groups[None, :]
        means = f"leaves values of {{achieved}} different subtrees at depth {self.e} possible"
        return separation_check(self, column, evidence, apart, means)
