"""Entropy (l1, ..., lq)-diversity: the entropy of every class is at least log l (paper 000, definitions 13, 14)."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.models.base import CLASS, KNOWS_SHARES, Check, Evidence, Probes, Promise, SearchRule
from noren.models.class_check import TOLERANCE, ClassModel, Judged
from noren.models.histograms import Histograms
from noren.models.set_check import EvenSetCheck
from noren.statements import Statement


class EntropyLDiversity(ClassModel):
    """The values of every class are as mixed as l equally frequent ones.

    With sets, a class is a mixture of uniform distributions over its records' sets, and entropy is concave: the mixture
    has at least the entropy of its smallest set. Where a design makes members of a set unequally likely, the size gives
    way to the reciprocal of the largest belief in one, which bounds the entropy from below. A high entropy still
    permits one value that is much more frequent than the others.
    """

    model: Literal["entropy-l-diversity"] = "entropy-l-diversity"
    probing: ClassVar[Probes] = ({"l": 2},)
    counts_values: ClassVar[bool] = True
    l: float = Field(gt=1, description="The entropy of every class must be at least log(l).")  # noqa: E741

    def judge_sets(self, statement: Statement, evidence: Evidence) -> Check:
        return EvenSetCheck(self, statement, self.l, "the entropy of every class is at least log({achieved})")

    @property
    def most_belief(self) -> float:
        return 1 / self.l

    @property
    def search_rule(self) -> SearchRule:
        return SearchRule("entropy", self.l)

    def judge_histograms(self, part: Histograms, column: Statement, overall: NDArray[np.float64]) -> Judged:
        entropy = part.total(-part.share * np.log(part.share))
        return np.exp(entropy), entropy >= np.log(self.l) - TOLERANCE

    def says(self, achieved: float, smallest: int) -> str:
        return f"the entropy of every class is at least log({achieved:.4g})"

    def promise(self, names: str, sets: bool) -> Promise:
        where = "For every person the possible" if sets else f"{CLASS}, the"
        return Promise(
            f"{where} values of {names} have at least the entropy of {self.l:g} equally frequent values.",
            "Entropy is an average: one value may still be much more frequent than the others. " + KNOWS_SHARES,
        )
