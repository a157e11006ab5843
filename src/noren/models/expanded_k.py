"""(k1, ..., kq)-anonymity of paper 000 (definitions 17, 18), under an honest name.

It counts rows of the un-aggregated form, and l of them come from one person: it is not k-anonymity.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from noren.models.base import Check, Evidence, Model, Probes, Promise
from noren.models.set_check import SetSizeCheck, ValuesCheck
from noren.statements import Statement


class ExpandedK(Model):
    """Every class of the un-aggregated form has at least k rows, of which one person may account for all.

    Classes put together have the rows of both, so coarsening preserves it.
    """

    model: Literal["expanded-k"] = "expanded-k"
    probing: ClassVar[Probes] = ({"k": 2},)
    parameter: ClassVar[str] = "k"
    coarsening_preserves: ClassVar[bool] = True
    k: int = Field(ge=2, description="Smallest permitted class of expanded rows (not of people).")

    def judge_sets(self, statement: Statement, evidence: Evidence) -> Check:
        return SetSizeCheck(self, statement, self.k, "every class has at least {achieved} expanded rows (not people)")

    @property
    def judges_left_out(self) -> bool:
        return True

    def left_out_checks(self, evidence: Evidence) -> list[Check]:
        means = "{achieved} values stay possible for each of them"
        return [ValuesCheck(self, evidence.columns[name], len, self.k, means) for name in self.on]

    def promise(self, names: str, sets: bool) -> Promise:
        return Promise(
            f"Written out with one row for each possible value, the release has at least {self.k} rows for every "
            f"combination of the other columns with values of {names}.",
            "It counts rows, not people: all of them may belong to one person. It is not k-anonymity.",
        )
