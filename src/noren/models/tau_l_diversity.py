"""(tau, l)-diversity: a ceiling on the most frequent value, and on the k most frequent together (paper 004)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from noren.errors import ModelDoesNotApply
from noren.models.base import CLASS, KNOWS_SHARES, Model, Promise, SearchRule
from noren.models.class_check import TOLERANCE, ClassModel, Judged
from noren.models.histograms import Histograms
from noren.statements import Statement

Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]

MOST_L = 8
"""Up to which l the figure is measured."""


class TauLDiversity(ClassModel):
    """In every class the k most frequent values have a total share of at most psi(k), for all k.

    psi rises from tau at k = 1 to 1 at k = l, evenly unless `ceilings` say how, so no class rests on fewer than l
    values and none of them exceeds tau. tau = 1/l is frequency diversity. It does not bound somebody who knows
    how common the values are elsewhere.
    """

    model: Literal["tau-l-diversity"] = "tau-l-diversity"
    limits_share: ClassVar[bool] = True
    counts_holders: ClassVar[bool] = True
    parameter: ClassVar[str] = "tau"
    higher_is_safer: ClassVar[bool] = False
    hopeless: ClassVar[float | None] = 1.0
    tau: float = Field(gt=0, lt=1, description="Largest permitted share of one value in a class, from 1/l up.")
    l: int = Field(ge=2, description="Number of different values that every class must have.")  # noqa: E741
    ceilings: tuple[float, ...] | None = Field(
        default=None,
        description=(
            "psi(1), ..., psi(l - 1), rising from tau and below 1: the largest share of the most frequent value, of "
            "the two most frequent values, and so on."
        ),
    )
    weights: dict[str, Weight] | None = Field(
        default=None,
        description=(
            "Relative weights of the values under a generalised value; 1 by default. A value with weight "
            "0 is impossible under a generalised value."
        ),
    )

    @model_validator(mode="after")
    def _within(self) -> TauLDiversity:
        if self.tau < 1 / self.l - TOLERANCE:
            raise ValueError(f"tau = {self.tau:g} is below 1/l = {1 / self.l:.4g}, which no class can reach")
        if self.ceilings is not None:
            if len(self.ceilings) != self.l - 1:
                raise ValueError(
                    f"l = {self.l} needs {self.l - 1} limits, psi(1) to psi(l - 1), not {len(self.ceilings)}"
                )
            if self.ceilings[0] != self.tau:
                raise ValueError(
                    f"the first ceiling is {self.ceilings[0]:g}, but tau is {self.tau:g}; both are psi(1) and must be "
                    "equal"
                )
            if not all(a < b for a, b in pairwise((*self.ceilings, 1.0))):
                raise ValueError("ceilings must rise and stay below 1")
        return self

    def psi(self, k: int) -> float:
        """Return the limit on the k most frequent values together."""
        if k >= self.l:
            return 1.0
        return self._evenly(self.tau, k) if self.ceilings is None else self.ceilings[k - 1]

    def _evenly(self, tau: float, k: int) -> float:
        return tau + (1 - tau) * (k - 1) / (self.l - 1)

    def base_weights(self, column: Statement) -> NDArray[np.float64] | None:
        if self.weights is None or column.nodes is None:
            return None
        labels = base_labels(column)
        known = [label for label in labels if label in self.weights]
        if not known:
            raise ModelDoesNotApply(
                f"the weights of tau-l-diversity name no value of {column.name!r}.",
                hint="Write weights with the labels of the column's values, such as weights = { flu = 3 }.",
            )
        return np.array([self.weights.get(label, 1.0) for label in labels])

    @property
    def largest_share(self) -> float:
        return self.tau

    @property
    def search_rule(self) -> SearchRule:
        """Return the weakest requirement with linear limits that implies this one, which is what searches can use.

        It lies below every ceiling, at as few values as can be: with more of them the line starts lower.
        """
        if self.ceilings is None:
            return SearchRule("tau_l", self.tau, self.l)
        size = self.l
        while (tau := self._below(size)) < 1 / size:
            size += 1
        return SearchRule("tau_l", tau, size)

    def _below(self, size: int) -> float:
        """Return where a straight line that ends at `size` values may start to stay below every limit."""
        shares = ((k - 1) / (size - 1) for k in range(1, self.l))
        return min((self.psi(k) - even) / (1 - even) for k, even in enumerate(shares, 1))

    @classmethod
    def probes(cls, statement: Statement | None) -> Sequence[Model]:
        if statement is None:
            return []
        return [cls(on=statement.name, tau=0.9, l=size) for size in range(2, min(MOST_L, statement.d) + 1)]

    def judge_histograms(self, part: Histograms, column: Statement, overall: NDArray[np.float64]) -> Judged:
        good = part.distinct >= self.l
        reached = np.where(good, 0.0, 1.0)
        together = np.zeros(len(part))
        for k in range(1, min(self.l - 1, int(part.distinct.max())) + 1):
            has = part.distinct >= k
            together[has] += part.ranked_masses[part.starts[:-1][has] + k - 1]
            share = together / part.n
            good &= share <= self.psi(k) + TOLERANCE
            reached = np.maximum(reached, self._least_tau(share, k))
        return np.minimum(reached, 1.0), good

    def _least_tau(self, share: NDArray[np.float64], k: int) -> NDArray[np.float64]:
        """Return the tau that the k most frequent values need: for linear limits, or for these limits in proportion."""
        if self.ceilings is not None:
            return share * (self.tau / self.psi(k))
        evenly = (k - 1) / (self.l - 1)
        return (share - evenly) / (1 - evenly)

    def says(self, achieved: float, smallest: int) -> str:
        return (
            f"every class is ({achieved:.4g}, {self.l})-diverse: the shares of its k top values stay below psi(k) for "
            "all k"
        )

    def promise(self, names: str, sets: bool) -> Promise:
        return Promise(
            f"{CLASS}, no value of {names} has a share above {self.tau:.4g}, the most frequent values together stay "
            f"below the declared limits, and at least {self.l} values remain possible.",
            KNOWS_SHARES,
        )


def base_labels(column: Statement) -> tuple[str, ...]:
    """Return the labels of a generalised column's base values."""
    tree = column.column.tree
    if tree is not None and len(tree.leaves) == column.d:
        return tree.leaves
    single: dict[int, str] = {}
    if column.nodes is not None:
        alone = np.flatnonzero(column.nodes.sizes == 1)
        single = {int(column.nodes.members(node)[0]): column.nodes.labels[node] for node in alone.tolist()}
    if len(single) < column.d:
        raise ModelDoesNotApply(
            f"weights need the names of all values of {column.name!r}, which the release does not list.",
            hint="Give the column a hierarchy, or remove the weights.",
        )
    return tuple(single[code] for code in range(column.d))
