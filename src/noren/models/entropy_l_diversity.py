"""Entropy (l1, ..., lq)-diversity: the entropy of every class is at least log l (paper 000, definitions 13, 14)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.models.base import CLASS, KNOWS_SHARES, Check, Evidence, Model, Promise, SearchRule
from noren.models.class_check import TOLERANCE, ClassModel, Judged
from noren.models.histograms import Histograms
from noren.models.set_check import SetSizeCheck
from noren.statements import Statement


class EntropyLDiversity(ClassModel):
    """The values of every class are as mixed as l equally frequent ones.

    With sets, a class is a mixture of uniform distributions over its records' sets, and entropy is concave: the mixture
    has at least the entropy of its smallest set. A high entropy still permits one value that is much more frequent
    than the others.
    """

    model: Literal["entropy-l-diversity"] = "entropy-l-diversity"
    counts_values: ClassVar[bool] = True
    l: float = Field(gt=1, description="The entropy of every class must reach log(l).")  # noqa: E741

    def judge_sets(self, statement: Statement, evidence: Evidence) -> Check:
        return SetSizeCheck(self, statement, self.l, "the entropy of every class is at least log({achieved})")

    @property
    def search_rule(self) -> SearchRule:
        return SearchRule("entropy", self.l)

    @classmethod
    def probes(cls, statement: Statement | None) -> Sequence[Model]:
        return [cls(on=statement.name, l=2)] if statement is not None else []

    def judged(self, part: Histograms, column: Statement, overall: NDArray[np.float64]) -> Judged:
        entropy = part.total(-part.share * np.log(part.share))
        return np.exp(entropy), entropy >= np.log(self.l) - TOLERANCE

    def says(self, achieved: float, smallest: int) -> str:
        return f"the entropy of every class is at least log({achieved:.4g})"

    def promise(self, names: str, sets: bool) -> Promise:
        where = "For every person the possible" if sets else f"{CLASS}, the"
        return Promise(
            f"{where} values of {names} are as mixed as {self.l:g} equally frequent ones.",
            "It is an average: one value may still be clearly more frequent than the others. " + KNOWS_SHARES,
        )
