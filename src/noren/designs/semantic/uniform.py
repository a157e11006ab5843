"""Product designs: P(R | v) = w(R) / m_v with w(R) a product of value weights.

`uniform-sets` has all weights 1: every feasible set around the truth is equally likely. With other weights the same
code serves `flat`. m_v is the sum of w over the feasible sets around v, and all an adversary can gain from R beyond
the prior is the factor 1 / m_v.
"""

# ruff: noqa: E741  l is the paper's letter

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from noren.designs.semantic.compatibility import Compatibility
from noren.designs.semantic.law import Law, RowKernel, least_sums, list_sets
from noren.errors import NorenError

if TYPE_CHECKING:
    from noren.designs.semantic.kernels.draws import Messages

TABLE_LIMIT = 1_000_000  # sets of a general matrix that may be listed for drawing


class Product(Law):
    """Sets drawn in proportion to the product of their values' weights: by dynamic programme on a chain, else listed.

    A draw rounds each of its at most l choices to 53 bits, so no set's probability is off by more than l 2^-53.
    """

    def __init__(self, compatibility: Compatibility, l: int, weights: NDArray[np.float64] | None = None) -> None:
        super().__init__(compatibility, l)
        self.weights = np.ones(self.F) if weights is None else np.asarray(weights, float)

    @cached_property
    def _sets(self) -> NDArray:
        sets = list_sets(self.compatibility, self.l, TABLE_LIMIT)
        if sets is None:
            raise NorenError(
                f"This distance is neither ranks, a line nor a tree, and has more than {TABLE_LIMIT:,} feasible sets "
                f"of {self.l} values: too many to list.",
                hint="Use the design 'simple', a larger d, or a distance along a line or a tree.",
            )
        return sets

    @cached_property
    def _messages(self) -> Messages:
        from noren.designs.semantic.kernels.chains import messages, splits
        from noren.designs.semantic.kernels.draws import Messages

        chain = self.compatibility.chain
        assert chain is not None
        right, left = messages(self.weights[chain.order], chain.after, chain.before, self.l)
        return Messages(right, left, splits(chain.after, chain.before, right, left))

    @cached_property
    def mass(self) -> NDArray[np.float64]:
        """m_v without the weight of v itself: the total weight of the decoys that can go with v."""
        chain = self.compatibility.chain
        if chain is not None:
            return np.asarray(self._messages.split[chain.place, self.l])
        sums = self.weights[self._sets].prod(axis=1)
        out = np.zeros(self.F)
        for column in self._sets.T:
            out += np.bincount(column, sums, self.F)
        return out / self.weights

    def likelihood(self, sets: NDArray) -> NDArray[np.float64]:
        return np.asarray(self.weights[sets].prod(axis=1)[:, None] / (self.weights * self.mass)[sets])

    def words(self) -> int:
        return 2 * self.l if self.compatibility.chain is not None else 2

    def kernel(self) -> RowKernel:
        chain = self.compatibility.chain
        if chain is not None:
            from noren.designs.semantic.kernels.draws import chain_product

            given = self._messages
            return lambda words, codes, out: chain_product(
                words, codes, chain.order, chain.place, chain.after, chain.before, given, out
            )
        from noren.designs.semantic.kernels.draws import table_product

        sets = self._sets
        members = sets.ravel()
        by_value = np.argsort(members, kind="stable")
        numbers = (by_value // self.l).astype(np.int32)
        starts = np.concatenate([[0], np.cumsum(np.bincount(members, minlength=self.F))])
        sums = np.concatenate([[0.0], np.cumsum(self.likelihood(sets).ravel()[by_value])])
        return lambda words, codes, out: table_product(words, codes, starts, sums, numbers, sets, out)

    def inclusion(self) -> NDArray[np.float64] | None:
        from noren.designs.semantic.kernels.chains import pair_weights

        chain = self.compatibility.chain
        if chain is None or self.l == 1:
            return None
        right, left, _ = self._messages
        pairs = pair_weights(self.weights[chain.order], chain.after, chain.before, right, left)
        return np.asarray((pairs / np.diag(pairs)[:, None])[np.ix_(chain.place, chain.place)])

    def worst_posterior(self, prior: NDArray[np.float64]) -> float | None:
        """P(v | R) is in proportion to prior_v / m_v: worst with the least such companions."""
        chain = self.compatibility.chain
        if chain is None:
            return None
        odds = (prior / (self.weights * self.mass))[chain.order]
        left = least_sums(odds, chain.before, self.l)
        right = least_sums(odds[::-1], self.F - chain.after[::-1], self.l)
        least = np.full(self.F, np.inf)
        for k in range(self.l):
            least = np.minimum(least, left[k, chain.before] + right[self.l - 1 - k, self.F - chain.after])
        return float((odds[odds > 0] / (odds + least)[odds > 0]).max())

    def second_moments(self, scores: NDArray[np.float64]) -> NDArray[np.float64] | None:
        from noren.designs.semantic.kernels.chains import chain_second_moments

        chain = self.compatibility.chain
        if chain is None:
            return None
        out = np.empty(scores.shape)
        ordered = np.ascontiguousarray(scores[:, chain.order])
        chain_second_moments(self.weights[chain.order], ordered, chain.after, chain.before, self.l, out)
        return np.asarray(out[:, chain.place])
