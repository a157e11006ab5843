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
from noren.designs.semantic.law import (
    Law,
    RowKernel,
    least_sums,
    list_sets,
    pair_weights,
    score_moments,
    set_weights,
    ways_beside,
)
from noren.errors import NorenError

if TYPE_CHECKING:
    from noren.designs.semantic.kernels import Messages

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
        from noren.designs.semantic.kernels import Messages

        chain = self.compatibility.chain
        assert chain is not None
        right, left = set_weights(self.weights[chain.order], chain, self.l)
        split = np.cumsum(ways_beside(chain, right, left), axis=1)
        return Messages(right, left, np.hstack([np.zeros((self.F, 1)), split]))

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
            from noren.designs.semantic.kernels import chain_product

            given = self._messages
            return lambda words, codes, out: chain_product(
                words, codes, chain.order, chain.place, chain.after, chain.before, given, out
            )
        sets = self._sets
        by_value = np.argsort(sets.ravel(), kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(sets.ravel(), minlength=self.F))])
        sums = np.concatenate([[0.0], np.cumsum(self.likelihood(sets).ravel()[by_value])])

        def draw(words: NDArray, codes: NDArray, out: NDArray) -> None:
            """A set of the list for each true value, by the running sums of its sets' chances."""
            begin, end = starts[codes], starts[codes.astype(np.int64) + 1]
            bits = (words[:, 0].astype(np.uint64) << np.uint64(21)) | (words[:, 1] >> np.uint32(11))
            sought = sums[begin] + bits * 2.0**-53 * (sums[end] - sums[begin])
            place = np.searchsorted(sums, sought, side="right") - 1
            out[:] = sets[by_value[np.clip(place, begin, end - 1)] // self.l]

        return draw

    def inclusion(self) -> NDArray[np.float64] | None:
        chain = self.compatibility.chain
        if chain is None or self.l == 1:
            return None
        right, left, _ = self._messages
        pairs = pair_weights(self.weights[chain.order], chain, right, left)
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
        chain = self.compatibility.chain
        if chain is None:
            return None
        F, weights, ordered = self.F, self.weights[chain.order], scores[:, chain.order]
        left = score_moments(weights, ordered, chain.before, self.l)[..., chain.before]
        right = score_moments(weights[::-1], ordered[:, ::-1], F - chain.after[::-1], self.l)[..., F - chain.after]
        a, b = left, right[:, ::-1]
        m0 = (a[0] * b[0]).sum(axis=0)
        m1 = (a[1] * b[0] + a[0] * b[1]).sum(axis=0)
        m2 = (a[2] * b[0] + 2.0 * a[1] * b[1] + a[0] * b[2]).sum(axis=0)
        return np.asarray(((m2 + 2.0 * ordered * m1 + ordered**2 * m0) / m0)[:, chain.place])
