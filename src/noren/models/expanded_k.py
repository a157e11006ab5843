"""(k1, ..., kq)-anonymity of paper 000 (definitions 17, 18), under an honest name.

It counts rows of the un-aggregated form, and l of them come from one person: it is not k-anonymity.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from noren.models.base import Check, Evidence, Form, Model, PublishedColumn, SetSizeCheck


class ExpandedK(Model):
    """Every class of the un-aggregated form has at least k rows, of which one person may account for all.

    Classes put together have the rows of both, so coarsening preserves it.
    """

    model: Literal["expanded-k"] = "expanded-k"
    parameter: ClassVar[str] = "k"
    forms: ClassVar[tuple[Form, ...]] = ("set",)
    coarsening_preserves: ClassVar[bool] = True
    k: int = Field(ge=2, description="Smallest permitted class of expanded rows (not of people).")

    def check(self, column: PublishedColumn, evidence: Evidence) -> Check:
        if column.form != "set":
            raise self.refuse_form(column)
        return SetSizeCheck(self, column, self.k, "every class has at least {achieved} expanded rows (not people)")
