"""Which records of a table are held out, by tuple and fold."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Held(NamedTuple):
    """Which records each of four folds holds out, every record once or never."""

    counts: NDArray[np.int32] | NDArray[np.float64]
    """(tuples, folds): how many, or of weighted records what they weigh"""
    only: NDArray[np.int8]
    """The fold of a tuple that occurs once, -1 for the others."""

    @classmethod
    def of(cls, held: NDArray[np.int32] | NDArray[np.float64], counts: NDArray[np.float64]) -> Held:
        a, b, c, d = held.T
        once = (counts == 1) & (a + b + c + d == 1)
        return cls(held, np.where(once, b + 2 * c + 3 * d, -1).astype(np.int8))

    def rows(self, chosen: NDArray[np.int64]) -> Held:
        """Those of some tuples."""
        return Held(self.counts[chosen], self.only[chosen])

    def gathered(self, place: NDArray[np.int64], size: int) -> NDArray[np.int32] | NDArray[np.float64]:
        """(size, folds): how many are held out if tuple t is counted at place[t]."""
        folds, once = self.counts.shape[1], self.only >= 0
        key = np.where(once, place * folds + self.only, size * folds)
        total = np.bincount(key, minlength=size * folds + 1)[:-1].astype(self.counts.dtype)
        others = np.flatnonzero(~once)
        np.add.at(total, place[others, None] * folds + np.arange(folds), self.counts[others])
        gathered: NDArray[Any] = total.reshape(size, folds)
        return gathered
