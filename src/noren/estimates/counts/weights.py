"""Survey weights: how many people of the population every record stands for.

They are scaled to a mean of 1 and the mean is kept beside them, so that all that counts records (stopping rules, least
sizes) stays as it is; sums are multiplied by it when they are reported. Unequal weights cost precision: Kish's design
effect n sum w^2 / (sum w)^2 is by what factor the variance of a mean exceeds that of as many records of equal weight,
where the weights have nothing to do with what is asked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noren.errors import ReleaseError


@dataclass(frozen=True, eq=False)
class Weights:
    """One weight for every row that is asked about."""

    name: str
    of: NDArray[np.float64]
    """Scaled: their mean is 1."""
    unit: float
    """The mean that they were divided by."""

    @classmethod
    def scaled(cls, name: str, numbers: NDArray[np.float64]) -> Weights:
        """Refuses what is no weight: a release that was made by this package has none."""
        if not np.isfinite(numbers).all() or numbers.min(initial=1.0) <= 0:
            raise ReleaseError(
                f"the weights {name!r} are not all numbers above 0.",
                hint="Ask the holder for the release again, or count records: weighted=False.",
            )
        unit = float(numbers.mean()) if len(numbers) else 1.0
        return cls(name, numbers / unit, unit)

    @property
    def design_effect(self) -> float:
        """Kish's: how much of the precision of as many equal records unequal weights cost."""
        return float(np.mean(self.of**2)) if len(self.of) else 1.0

    @property
    def assumes(self) -> str:
        """What a weighted number rests on, besides."""
        effect = f"design effect {self.design_effect:.2f}"
        return f"a record stands for as many people as {self.name!r} says ({effect}; records are weighed independently)"

    def assumes_without(self, suppressed: int) -> str:
        """The same of a table that so many people were left out of, whose weights nobody knows."""
        if not suppressed:
            return self.assumes
        return f"{self.assumes}; the {suppressed:,} people left out are not counted, for their weights are not known"
