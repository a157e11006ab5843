"""QS (c, l)-diversity (paper 001, definition 3): the labels that a group's terms are linked to stay diverse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from noren.models.base import Model, Promise
from noren.models.term_check import Beliefs, Judged, TermModel
from noren.statements import Statement


class QSDiversity(TermModel):
    """In every group p1 <= c (p_l + p_{l+1} + ...), beliefs in labels sorted from the largest.

    Nobody who has the knowledge table and finds a person's group believes in one label with more than c / (c + 1).
    That bound is weak: with c = 1 a belief may rise from nothing to one half. QS t-closeness bounds the rise itself.
    """

    model: Literal["qs-diversity"] = "qs-diversity"
    parameter: ClassVar[str] = "c"
    c: float = Field(
        gt=0, allow_inf_nan=False, description="The top label is believed at most c times the l-th and later together."
    )
    l: int = Field(ge=2, description="Rank from which labels count as the less likely ones.")  # noqa: E741

    @property
    def tail_from(self) -> int:
        return self.l

    def judged(self, found: Beliefs) -> Judged:
        return found.ratio, found.peak <= self.c * found.tail + found.rounding

    def says(self, achieved: float, found: Beliefs) -> str:
        return (
            f"no group believes in a label with more than {found.highest:.4g} (bound {self.c / (self.c + 1):.4g}); "
            f"the top label has at most {achieved:.4g} times the labels from rank {self.l} on"
        )

    @classmethod
    def probes(cls, statement: Statement | None) -> Sequence[Model]:
        return [cls(on=statement.name, c=1.0, l=size) for size in (2, 3, 5, 10)] if statement is not None else []

    def promise(self, names: str, sets: bool) -> Promise:
        return Promise(
            f"Whoever finds the records that could be a person's and links their {names} to labels with the knowledge "
            f"table believes in no single label with more than {self.c / (self.c + 1):.0%}.",
            "The belief may rise from nothing up to that bound. Somebody with another knowledge table is not limited.",
        )
