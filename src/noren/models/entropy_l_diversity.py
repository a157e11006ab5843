"""Entropy (l1, ..., lq)-diversity: the entropy of every class is at least log l (paper 000, definitions 13, 14)."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.models.base import Check, Evidence, Form, PublishedColumn, SetSizeCheck
from noren.models.class_check import TOLERANCE, ClassModel, Judged
from noren.models.classes import Histograms


class EntropyLDiversity(ClassModel):
    """The values of every class are as mixed as l equally frequent ones.

    With sets, a class is a mixture of uniform distributions over its records' sets, and entropy is concave: the mixture
    has at least the entropy of its smallest set. A high entropy still permits one value that is much more frequent
    than the others.
    """

    model: Literal["entropy-l-diversity"] = "entropy-l-diversity"
    forms: ClassVar[tuple[Form, ...]] = ("set", "value", "node", "group")
    l: float = Field(gt=1, description="The entropy of every class must reach log(l).")  # noqa: E741

    def check(self, column: PublishedColumn, evidence: Evidence) -> Check:
        if column.form == "set":
            return SetSizeCheck(self, column, self.l, "the entropy of every class is at least log({achieved})")
        return super().check(column, evidence)

    def judged(self, part: Histograms, column: PublishedColumn, overall: NDArray[np.float64]) -> Judged:
        entropy = part.total(-part.share * np.log(part.share))
        return np.exp(entropy), entropy >= np.log(self.l) - TOLERANCE

    def says(self, achieved: float, smallest: int) -> str:
        return f"the entropy of every class is at least log({achieved:.4g})"
