"""Frequency (l1, ..., lq)-diversity: no value makes up more than 1/l of a class (paper 000, definitions 10-12)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from noren.models.base import Check, Evidence, Model, PublishedColumn, SetSizeCheck


class FrequencyLDiversity(Model):
    """At least l values stay possible for the column, however well the other columns are known.

    It counts how often values occur inside a class. It does not bound an adversary who also knows how common the
    values are: inside a set the posterior odds are the prior odds.
    """

    model: Literal["frequency-l-diversity"] = "frequency-l-diversity"
    l: int = Field(ge=2, description="No value may make up more than 1/l of a class.")  # noqa: E741

    def check(self, column: PublishedColumn, evidence: Evidence) -> Check:
        if column.form != "set":
            raise self.refuse_form(column)
        return SetSizeCheck(self, column, self.l, "every record leaves at least {achieved} values possible")
