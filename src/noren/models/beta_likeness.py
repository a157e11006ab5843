"""beta-likeness (Cao and Karras): no value becomes much more likely in a class than it is in the whole release."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.models.base import Probes, Promise, SearchRule
from noren.models.class_check import TOLERANCE, ClassModel, Judged
from noren.models.histograms import Histograms
from noren.statements import Statement


class BetaLikeness(ClassModel):
    """In a person's class, the share q of no value exceeds its overall share by more than beta * q.

    It protects rare values as well as common ones. Shares may fall without limit, so an adversary may learn that a
    person does not have a common value.
    """

    model: Literal["beta-likeness"] = "beta-likeness"
    probing: ClassVar[Probes] = ({"beta": 1.0, "form": "basic"}, {"beta": 1.0})
    parameter: ClassVar[str] = "beta"
    higher_is_safer: ClassVar[bool] = False
    relative: ClassVar[bool] = True
    beta: float = Field(gt=0, allow_inf_nan=False, description="Largest permitted relative gain of a value's share.")
    form: Literal["basic", "enhanced"] = Field(
        default="enhanced",
        description="The enhanced form also bounds the gain by -ln(q), so that no common value becomes certain.",
    )

    @property
    def search_rule(self) -> SearchRule:
        return SearchRule(f"beta_{self.form}", self.beta)

    def judge_histograms(self, part: Histograms, column: Statement, overall: NDArray[np.float64]) -> Judged:
        q = overall[part.value]
        gain = (part.share - q) / q
        if self.form == "enhanced":
            gain = np.where(gain <= -np.log(q) + TOLERANCE, gain, np.inf)
        reached = np.maximum(part.largest(gain), 0.0)
        return reached, reached <= self.beta + TOLERANCE

    def says(self, achieved: float, smallest: int) -> str:
        if np.isinf(achieved):
            return "in some class a value gains more than the enhanced form permits for any beta"
        return f"in every class, the share q of a value grows by at most {achieved:.4g} q"

    def promise(self, names: str, sets: bool) -> Promise:
        return Promise(
            f"Among the records that match a person, no value of {names} is more than {1 + self.beta:.4g} times as "
            "frequent as in the whole release.",
            "It does not limit how much less likely a value becomes: an adversary may learn that a person does not "
            "have a common value.",
        )
