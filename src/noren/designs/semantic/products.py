"""Product designs: P(R | v) = w(R) / m_v with w(R) a product of value weights.

`uniform-sets` has all weights 1: every feasible set around the truth is equally likely. With other weights the same
code serves `flat`. m_v is the sum of w over the feasible sets around v, and all an adversary can gain from R beyond
the prior is the factor 1 / m_v.

Under `flat` and a uniform prior every member of a published set is the true one with probability 1/l. That holds iff
P(R | v) is the same for all members v of R. On ranks there is a closed form: l points on a circle with gaps d + a_i,
the a_i a uniformly random composition of F - l d, rotated so that one point is v. Elsewhere the design is the product
design of largest entropy whose m_v is constant; on a line or a tree it exists iff no window of width d (no class)
holds more than F/l values.
"""

# ruff: noqa: E741  l is the paper's letter

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from noren.designs.draw import unfair
from noren.designs.semantic.compatibility import Classes, Compatibility, Ranks
from noren.designs.semantic.law import (
    Law,
    RowKernel,
    least_sums,
    list_sets,
    pair_weights,
    score_moments,
    set_weights,
    sum_pairs,
    units_of,
    ways_beside,
)
from noren.errors import NorenError

TABLE_LIMIT = 1_000_000  # sets of a general matrix that may be listed for drawing


class Messages(NamedTuple):
    """Running sums of the weights of the sets on a chain."""

    right: NDArray[np.float64]
    """right[k]: over the place of the next value to the right, counted from the right end, when k more follow it."""
    left: NDArray[np.float64]
    """The same to the left."""
    split: NDArray[np.float64]
    """split[v]: over how many values lie left of v."""


class Product(Law):
    """The law of sets drawn in proportion to the product of their values' weights: by dynamic programme on a chain,
    otherwise from a list.

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
        chain = self.compatibility.chain
        assert chain is not None
        right, left = set_weights(self.weights[chain.order], chain, self.l)
        split = np.cumsum(ways_beside(chain, right, left), axis=1)
        return Messages(right, left, np.hstack([np.zeros((self.F, 1)), split]))

    @cached_property
    def mass(self) -> NDArray[np.float64]:
        """Return m_v without the weight of v: the total weight of the decoys that are compatible with v."""
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
            return self._draw_chain
        sets = self._sets
        by_value = np.argsort(sets.ravel(), kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(sets.ravel(), minlength=self.F))])
        sums = np.concatenate([[0.0], np.cumsum(self.likelihood(sets).ravel()[by_value])])

        def draw(words: NDArray, codes: NDArray, out: NDArray) -> None:
            """Draw a listed set for each true value by the running sums of probabilities."""
            begin, end = starts[codes], starts[codes.astype(np.int64) + 1]
            sought = sums[begin] + units_of(words)[:, 0] * (sums[end] - sums[begin])
            place = np.searchsorted(sums, sought, side="right") - 1
            out[:] = sets[by_value[np.clip(place, begin, end - 1)] // self.l]

        return draw

    def _draw_chain(self, words: NDArray, codes: NDArray, out: NDArray) -> None:
        """Draw how many values are left of the true one, and then one after the other to the left and to the right."""
        chain, units = self.compatibility.chain, units_of(words)
        assert chain is not None
        right, left, split = self._messages
        truth = chain.place[codes]
        places = np.repeat(truth[:, None], self.l, axis=1)
        n_left = (split[truth, 1 : self.l] <= (units[:, 0] * split[truth, self.l])[:, None]).sum(axis=1)
        for sums, near, count, first in (
            (left, chain.before, n_left, np.zeros_like(n_left)),
            (right, self.F - chain.after, self.l - 1 - n_left, n_left),
        ):
            at = truth.copy()
            for k in range(self.l - 2, -1, -1):
                rows = np.flatnonzero(count > k)
                word, end = first[rows] + count[rows] - k, near[at[rows]]
                picked = np.searchsorted(sums[k], units[rows, word] * sums[k, end], side="right") - 1
                picked = np.minimum(picked, end - 1)
                at[rows] = picked if sums is left else self.F - 1 - picked
                places[rows, word] = at[rows]
        out[:] = np.sort(chain.order[places], axis=1)

    def inclusion(self) -> NDArray[np.float64] | None:
        chain = self.compatibility.chain
        if chain is None or self.l == 1:
            return None
        right, left, _ = self._messages
        pairs = pair_weights(self.weights[chain.order], chain, right, left)
        return np.asarray((pairs / np.diag(pairs)[:, None])[np.ix_(chain.place, chain.place)])

    def worst_posterior(self, prior: NDArray[np.float64]) -> float | None:
        """Return the largest posterior: P(v | R) is proportional to prior_v / m_v."""
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


FLATNESS = 1e-9  # largest relative difference between inclusion shares that still counts as flat
_STEPS = 200
_REACH = 60.0  # weights beyond exp(60) mean that some sets would need probability 0

Sums = Callable[[NDArray], tuple[float, NDArray, NDArray]]


class CircularFlat(Law):
    """P(R | v) = 1 / C(F - l d + l - 1, l - 1) for every set on the circle that contains v, exactly."""

    def likelihood(self, sets: NDArray) -> NDArray[np.float64]:
        step = self.compatibility.step
        ways = comb(self.F - self.l * step + self.l - 1, self.l - 1)
        wide = sets.astype(np.int64)
        on_circle = (wide[:, -1] - wide[:, 0] <= self.F - step) if self.l > 1 else np.ones(len(sets), bool)
        return np.repeat(on_circle[:, None] / ways, self.l, axis=1)

    def words(self) -> int:
        return self.l - 1

    def kernel(self) -> RowKernel:
        """The composition is l - 1 bars among F - l step + l - 1 spots (Floyd)."""
        F, l, step = self.F, self.l, self.compatibility.step
        spots = F - l * step + l - 1

        def rows(words: NDArray, codes: NDArray, out: NDArray) -> NDArray[np.int64]:
            bars = np.empty((len(codes), l - 1), np.int64)
            again = np.zeros(len(codes), bool)
            for k in range(l - 1):
                last = spots - (l - 1) + k
                product = words[:, k].astype(np.uint64) * np.uint64(last + 1)
                again |= unfair(product, last + 1)
                bar = (product >> np.uint64(32)).astype(np.int64)
                bars[:, k] = np.where((bars[:, :k] == bar[:, None]).any(axis=1), last, bar)
            bars.sort(axis=1)
            places = bars + codes[:, None] + step + np.arange(l - 1) * (step - 1)
            out[:, 0], out[:, 1:] = codes, places % F
            out.sort(axis=1)
            return np.flatnonzero(again)

        return rows

    def inclusion(self) -> NDArray[np.float64]:
        """The second moments of scores that are 1 for one value: of the first truth, and of others by turning."""
        row = self._moments_of(0, np.eye(self.F))
        return np.asarray(row[np.subtract.outer(np.arange(self.F), np.arange(self.F)).T % self.F])

    def worst_posterior(self, prior: NDArray[np.float64]) -> float:
        """Return the largest posterior: posterior odds are prior odds, so the least likely companions are worst."""
        step, worst = self.compatibility.step, 0.0
        before = np.maximum(np.arange(self.F - 2 * step + 1) + 1 - step, 0)
        for v in np.flatnonzero(prior > 0):
            around = prior[(v + step + np.arange(len(before))) % self.F]
            least = least_sums(around, before, self.l)[self.l - 1, -1] if self.l > 1 else 0.0
            worst = max(worst, float(prior[v] / (prior[v] + least)))
        return worst

    def second_moments(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.stack([self._moments_of(v, scores) for v in range(self.F)], axis=1)

    def _moments_of(self, v: int, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Cut the circle at the truth: the other values are a chain of the offsets step .. F - step from it."""
        own, step = scores[:, v], self.compatibility.step
        if self.l == 1:
            return np.asarray(own**2)
        inner = self.F - 2 * step + 1
        around = scores[:, (v + step + np.arange(inner)) % self.F]
        near = np.maximum(np.arange(inner) + 1 - step, 0)
        m0, m1, m2 = score_moments(np.ones(inner), around, near, self.l)[:, -1, :, -1]
        return np.asarray((m2 + 2.0 * own * m1 + own**2 * m0) / m0)


def flat_weights(compatibility: Compatibility, l: int) -> NDArray[np.float64] | None:
    """Value weights with constant m_v, scaled to geometric mean 1; None where the flat design does not exist.

    With w = exp(theta) and sets drawn in proportion to w(R), inclusion shares l/F for all values are the minimum of
    log sum_R w(R) - (l/F) sum_v theta_v, which is convex: Newton's method, with the Hessian from the pairs' shares.
    """
    assert not isinstance(compatibility.structure, Ranks)
    F, chain = compatibility.F, compatibility.chain
    if chain is not None:
        if chain.widest() * l > F:
            return None
        sums = _chain_sums(compatibility, l)
    else:
        sets = list_sets(compatibility, l, TABLE_LIMIT)
        if sets is None:
            return None
        sums = _listed_sums(sets, F)
    theta = np.zeros(F)
    log_total, share, pairs = sums(theta)
    for _ in range(_STEPS):
        if np.abs(share * F / l - 1).max() < FLATNESS:
            return np.exp(theta)
        # Weights that all grow by one factor change nothing, and at the limit of what is identifiable neither do
        # others: the first direction is filled in, the rest is held by a ridge far below the curvature that matters.
        hessian = pairs - np.outer(share, share) + (l / F) ** 2
        hessian[np.diag_indices(F)] += 1e-12 * l / F
        move = -np.linalg.solve(hessian, share - l / F)
        move *= min(1.0, 2.0 / np.abs(move).max())
        slope = float(move @ (share - l / F))
        for _ in range(30):
            trial = theta + move
            trial -= trial.mean()
            new_total, new_share, new_pairs = sums(trial)
            if new_total <= log_total + 1e-4 * slope + 1e-15 * abs(log_total):
                break
            move, slope = move / 2, slope / 2
        theta, log_total, share, pairs = trial, new_total, new_share, new_pairs
        if np.abs(theta).max() > _REACH:
            break
    return np.exp(theta) if np.abs(share * F / l - 1).max() < FLATNESS else None


def _chain_sums(compatibility: Compatibility, l: int) -> Sums:
    """Return log sum_R w(R), the share of sets with each value, and with each pair of values, by dynamic programme."""
    chain = compatibility.chain
    assert chain is not None

    def sums(theta: NDArray) -> tuple[float, NDArray, NDArray]:
        weights = np.exp(theta[chain.order])
        right, left = set_weights(weights, chain, l)
        total = float(right[l - 1, -1])
        pairs = pair_weights(weights, chain, right, left)[np.ix_(chain.place, chain.place)] / total
        return float(np.log(total)), np.diag(pairs).copy(), pairs

    return sums


def _listed_sums(sets: NDArray, F: int) -> Sums:
    """Return the same sums over listed sets."""

    def sums(theta: NDArray) -> tuple[float, NDArray, NDArray]:
        logs = theta[sets].sum(axis=1)
        top = logs.max()
        weights = np.exp(logs - top)
        total = weights.sum()
        pairs = sum_pairs(sets, np.repeat((weights / total)[:, None], sets.shape[1], axis=1), F)
        return float(top + np.log(total)), np.diag(pairs).copy(), pairs

    return sums


def why_not_flat(compatibility: Compatibility, l: int) -> str:
    """Return in words why equal beliefs are not possible."""
    F, chain = compatibility.F, compatibility.chain
    if chain is not None and chain.widest() * l > F:
        what = "one class" if isinstance(compatibility.structure, Classes) else "one window narrower than d"
        reason = f"{what} holds {chain.widest()} values, more than F/l = {F}/{l}"
    else:
        reason = "under this distance no weights make all values equally likely"
    return f"The flat design does not exist here ({reason}). "
