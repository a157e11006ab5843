"""beta-likeness (Cao and Karras): no value becomes much more likely in a class than it is in the whole release."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.models.base import Model, Promise, SearchRule
from noren.models.class_check import TOLERANCE, ClassModel, Judged
from noren.models.histograms import Histograms
from noren.statements import Statement


class BetaLikeness(ClassModel):
    """Learning a person's class raises the share q of no value by more than beta * q.

    It protects rare values as well as common ones. Shares may fall as far as they like: that a person does not have a
    common value may be learned.
    """

    model: Literal["beta-likeness"] = "beta-likeness"
    parameter: ClassVar[str] = "beta"
    higher_is_safer: ClassVar[bool] = False
    relative: ClassVar[bool] = True
    beta: float = Field(gt=0, allow_inf_nan=False, description="Largest permitted relative gain of a value's share.")
    form: Literal["basic", "enhanced"] = Field(
        default="enhanced", description="Enhanced bounds the gain by -ln(q) too, so no common value becomes certain."
    )

    @property
    def search_rule(self) -> SearchRule:
        return SearchRule(f"beta_{self.form}", self.beta)

    @classmethod
    def probes(cls, statement: Statement | None) -> Sequence[Model]:
        if statement is None:
            return []
        return [cls(on=statement.name, beta=1.0, form="basic"), cls(on=statement.name, beta=1.0)]

    def judged(self, part: Histograms, column: Statement, overall: NDArray[np.float64]) -> Judged:
        q = overall[part.value]
        gain = (part.share - q) / q
        if self.form == "enhanced":
            gain = np.where(gain <= -np.log(q) + TOLERANCE, gain, np.inf)
        reached = np.maximum(part.largest(gain), 0.0)
        return reached, reached <= self.beta + TOLERANCE

    def says(self, achieved: float, smallest: int) -> str:
        if np.isinf(achieved):
            return "some value gains more in a class than the enhanced form permits for any beta"
        return f"no value's share q grows by more than {achieved:.4g} q in a class"

    def promise(self, names: str, sets: bool) -> Promise:
        return Promise(
            f"Seeing the records that could be a person's makes no value of {names} more than "
            f"{1 + self.beta:.4g} times as likely as it is in the whole release.",
            "It does not limit how much less likely a value becomes: that a person does not have a common value may be "
            "learned.",
        )
