"""Cuts that leave records behind, for requirements that compare classes with the whole table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from noren.engines import RandomOrder, Records
from noren.methods.mondrian.classes import Workbench
from noren.methods.mondrian.kernels.exchange import Reserve, Secrets, exchange
from noren.models.base import Model
from noren.ragged import row_numbers

USED = 0.1
PER_SECRET = 20
"""A part of many records may use a tenth of what requirements permit, one of 20 records for every secret all of it.
Chosen on census and generated tables."""


class Exchange(Workbench):
    """A workbench whose cuts thin a side until it holds. Which of equal records stay behind is left to the order."""

    def __init__(
        self, table: Records, requirements: Sequence[Model], order: RandomOrder, weights: Mapping[str, float]
    ) -> None:
        super().__init__(table, requirements, order, weights)
        codes = self.records.secrets
        of = row_numbers(list(codes.T), (codes.max(axis=0, initial=0) + 1).tolist(), table.n)
        example = np.unique(of, return_index=True)[1]
        self.secrets = Secrets(of, codes[example].astype(np.int64), np.bincount(of) / max(1, table.n))
        self.reserve = Reserve(USED, float(PER_SECRET * len(example)))

    def divide(self, begins: NDArray[np.int64], relaxed: bool) -> NDArray[np.int64]:
        """Cut the parts that begin there: the first time with something in reserve, then and later without."""
        marks = exchange(self.records, self.secrets, begins, self.space.costs, self.required, self.reserve)
        if self.reserve.least < 1:
            self.reserve = Reserve(1.0, 1.0)
            return self.divide(np.concatenate([[0], np.flatnonzero(marks)]), relaxed)
        return np.asarray(marks)

    def arrange(self, of: NDArray[np.int64]) -> NDArray[np.int64]:
        together = super().arrange(of)
        self.secrets = self.secrets._replace(of=self.secrets.of[together])
        return together
