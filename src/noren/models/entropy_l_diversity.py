"""Entropy (l1, ..., lq)-diversity: the entropy of every class is at least log l (paper 000, definitions 13, 14)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from noren.models.base import Check, Evidence, Model, PublishedColumn, SetSizeCheck


class EntropyLDiversity(Model):
    """The values of every class are as mixed as l equally frequent ones.

    A class is a mixture of uniform distributions over its records' sets, and entropy is concave: the mixture has at
    least the entropy of its smallest set.
    """

    model: Literal["entropy-l-diversity"] = "entropy-l-diversity"
    l: float = Field(gt=1, description="The entropy of every class must reach log(l).")  # noqa: E741

    def check(self, column: PublishedColumn, evidence: Evidence) -> Check:
        if column.form != "set":
            raise self.refuse_form(column)
        return SetSizeCheck(self, column, self.l, "the entropy of every class is at least log({achieved})")
