"""What a search for terms found, of one group and of many."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class GroupResult:
    """What to remove from one group: a mask over its (record, term) entries, and how good it is known to be.

    Without a solution `feasible` is false and the cost infinite; `optimal` then says that none exists.
    """

    removed: NDArray[np.bool_]
    cost: float
    lower_bound: float
    optimal: bool
    feasible: bool
    nodes: int
    seconds: float

    @property
    def gap(self) -> float:
        """By how much the cost may exceed the least possible, as a share of the proven lower bound."""
        if self.optimal or self.cost == self.lower_bound:
            return 0.0
        return self.cost / self.lower_bound - 1 if self.lower_bound > 0 else np.inf


@dataclass(frozen=True)
class GroupsResult:
    """The same for many groups: one mask over all entries of the table, and one value a group."""

    removed: NDArray[np.bool_]
    cost: NDArray[np.float64]
    lower_bound: NDArray[np.float64]
    optimal: NDArray[np.bool_]
    feasible: NDArray[np.bool_]
    searched: NDArray[np.bool_]
    nodes: int
    seconds: float
