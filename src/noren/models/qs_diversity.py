"""QS (c, l)-diversity (paper 001, definition 3): beliefs in the labels of a group's terms stay diverse."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from noren.models.base import Probes, Promise
from noren.models.term_check import Beliefs, Judged, TermModel


class QSDiversity(TermModel):
    """In every group p1 <= c (p_l + p_{l+1} + ...), beliefs in labels sorted from the largest.

    Nobody who has the knowledge table and finds a person's group believes in one label with more than c / (c + 1).
    That bound is weak: with c = 1 a belief may rise from nothing to one half. QS t-closeness bounds the rise itself.
    """

    model: Literal["qs-diversity"] = "qs-diversity"
    probing: ClassVar[Probes] = tuple({"c": 1.0, "l": size} for size in (2, 3, 5, 10))
    parameter: ClassVar[str] = "c"
    c: float = Field(
        gt=0,
        allow_inf_nan=False,
        description="The belief in the top label must be at most c times the sum of beliefs from the l-th label on.",
    )
    l: int = Field(ge=2, description="Rank from which labels count as less likely.")  # noqa: E741

    @property
    def tail_from(self) -> int:
        return self.l

    def judge_beliefs(self, found: Beliefs) -> Judged:
        return found.ratio, found.peak <= self.c * found.tail + found.rounding

    def says(self, achieved: float, found: Beliefs) -> str:
        return (
            f"no label of a group is believed with more than {found.highest:.4g} (bound "
            f"{self.c / (self.c + 1):.4g}); the top label has at most {achieved:.4g} times the belief of the "
            f"labels from rank {self.l} on"
        )

    def promise(self, names: str, sets: bool) -> Promise:
        return Promise(
            f"Somebody who finds the records that match a person and links their {names} to labels with the "
            f"knowledge table believes no single label with more than {self.c / (self.c + 1):.0%}.",
            "The belief may rise from nearly 0 to that bound. An adversary with another knowledge table is not "
            "limited.",
        )
