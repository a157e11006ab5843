"""What quasi-sensitive terms reveal of a group, what is asked of it, and what a removal costs.

K(t), beliefs and distances come from `kernels/linkage.py`; `search` computes them another way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from noren.schema.knowledge import Knowledge

if TYPE_CHECKING:
    from noren.methods.suppress.kernels.linkage import Postings

Unlinked = Literal["ignore", "prior"]
"""What a record that links to no label contributes to its group's belief: nothing, or the prior."""
Array = NDArray[Any]

TOLERANCE = 1e-12
"""Rounding allowed on a requirement: beliefs are means of at most 1."""


@dataclass(frozen=True)
class TermRequirement:
    """QS (c, l)-diversity ("cl"): p1 <= c (p_l + p_{l+1} + ...); QS t-closeness ("t"): distance to alpha <= t.

    "emd" takes all labels to be equally far apart, with "no label" as one more value for belief that nothing takes.
    """

    kind: Literal["cl", "t"]
    c: float = 1.0
    l: int = 2  # noqa: E741
    t: float = 0.4
    metric: Literal["l2", "emd"] = "l2"

    def holds(self, measures: Array) -> NDArray[np.bool_]:
        """Which groups satisfy it, from the columns of `measure_groups`."""
        if self.kind == "cl":
            return np.asarray(measures[:, 1] <= self.c * measures[:, 2] + TOLERANCE)
        if self.metric == "l2":
            return np.asarray(measures[:, 3] <= self.t**2 + TOLERANCE)
        return np.asarray(measures[:, 4] <= self.t + TOLERANCE)


def removal_cost(sizes: Array, removed: Array) -> float:
    """Equation 2 for one group, from how many terms each record had and lost; 0 if there were no terms."""
    harmonic = _harmonic(max(1, int(np.max(sizes, initial=0))))
    most = harmonic[sizes].sum()
    return float((harmonic[sizes] - harmonic[np.asarray(sizes) - removed]).sum() / most) if most else 0.0


@cache
def _harmonic(most: int) -> NDArray[np.float64]:
    """0, 1, 1 + 1/2, ..."""
    return np.concatenate(([0.0], np.cumsum(1 / np.arange(1, most + 1))))


def priced_cost(prices: Array, removed: Array) -> float:
    """What the removed entries of one group cost by their prices, of what all cost; 0 if there were no terms."""
    most = float(prices.sum())
    return float(prices[removed].sum() / most) if most else 0.0


def postings_of(knowledge: Knowledge) -> Postings:
    """A knowledge table as the kernels read it."""
    from noren.methods.suppress.kernels.linkage import Postings

    logs = None if knowledge.pairs is None else knowledge.pairs.logs
    return Postings(*knowledge.postings, knowledge.bits, knowledge.label_weights, logs)


def estimated_prior(bounds: Array, codes: Array, knowledge: Knowledge) -> NDArray[np.float64]:
    """alpha: the mean belief over the whole table; records linked to no label contribute nothing."""
    from noren.methods.suppress.kernels.linkage import belief_sums

    sums, _ = belief_sums(bounds, codes, postings_of(knowledge))
    return np.asarray(sums / max(1, bounds.size - 1))


def measure_groups(
    order: Array,
    group_bounds: Array,
    bounds: Array,
    codes: Array,
    knowledge: Knowledge,
    alpha: Array | None = None,
    *,
    l: int = 1,  # noqa: E741
    unlinked: Unlinked = "ignore",
) -> NDArray[np.float64]:
    """Linked records, largest belief, tail from l on, squared L2 and earth mover's distance to alpha of every group."""
    from noren.methods.suppress.kernels import linkage

    prior = np.zeros(len(knowledge.labels)) if alpha is None else np.asarray(alpha, np.float64)
    postings = postings_of(knowledge)
    return np.asarray(
        linkage.group_measures(order, group_bounds, bounds, codes, postings, prior, unlinked == "prior", l)
    )
