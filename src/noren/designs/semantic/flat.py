"""The flat design: under a uniform prior every member of a published set is the true one with probability 1/l.

That holds iff P(R | v) is the same for all members v of R. On ranks there is a closed form: l points on a circle
with gaps d + a_i, the a_i a uniformly random composition of F - l d, rotated so that one point is v. Elsewhere the
design is the product design of largest entropy whose m_v is constant; on a line or a tree it exists iff no window of
width d (no class) holds more than F/l values.
"""

# ruff: noqa: E741  l is the paper's letter

from __future__ import annotations

from collections.abc import Callable
from math import comb

import numpy as np
from numpy.typing import NDArray

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
)
from noren.designs.semantic.uniform import TABLE_LIMIT

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
        from noren.designs.semantic.kernels import circle_flat

        F, step = self.F, self.compatibility.step

        def rows(words: NDArray, codes: NDArray, out: NDArray) -> NDArray[np.int64]:
            rejected = np.empty(len(codes), np.int64)
            return rejected[: circle_flat(words, codes, F, step, out, rejected)]

        return rows

    def inclusion(self) -> NDArray[np.float64]:
        """By the number of ways to reach an offset x from v in i gaps and to come back in l - i."""
        F, l, step = self.F, self.l, self.compatibility.step

        def ways(gaps: int, length: int) -> int:
            spare = length - gaps * step
            return comb(spare + gaps - 1, gaps - 1) if spare >= 0 else 0

        total = ways(l, F)
        row = [sum(ways(i, x) * ways(l - i, F - x) for i in range(1, l)) / total for x in range(1, F)]
        offset = np.subtract.outer(np.arange(F), np.arange(F)).T % F
        return np.array([1.0, *row])[offset]

    def worst_posterior(self, prior: NDArray[np.float64]) -> float:
        """Posterior odds are prior odds: worst with the least likely companions, found on the circle cut at v."""
        step, worst = self.compatibility.step, 0.0
        before = np.maximum(np.arange(self.F - 2 * step + 1) + 1 - step, 0)
        for v in np.flatnonzero(prior > 0):
            around = prior[(v + step + np.arange(len(before))) % self.F]
            least = least_sums(around, before, self.l)[self.l - 1, -1] if self.l > 1 else 0.0
            worst = max(worst, float(prior[v] / (prior[v] + least)))
        return worst

    def second_moments(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Cut the circle at the truth: the other values are a chain of the offsets step .. F - step from it."""
        step, inner = self.compatibility.step, self.F - 2 * self.compatibility.step + 1
        if self.l == 1:
            return scores**2
        near = np.maximum(np.arange(inner) + 1 - step, 0)
        out = np.empty(scores.shape)
        for v in range(self.F):
            around, own = scores[:, (v + step + np.arange(inner)) % self.F], scores[:, v]
            m0, m1, m2 = score_moments(np.ones(inner), around, near, self.l)[:, -1, :, -1]
            out[:, v] = (m2 + 2.0 * own * m1 + own**2 * m0) / m0
        return out


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
    """log sum_R w(R), the share of sets with each value, and with each pair of values, by dynamic programme."""
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
    """The same over sets that are listed."""

    def sums(theta: NDArray) -> tuple[float, NDArray, NDArray]:
        logs = theta[sets].sum(axis=1)
        top = logs.max()
        weights = np.exp(logs - top)
        total = weights.sum()
        pairs = sum_pairs(sets, np.repeat((weights / total)[:, None], sets.shape[1], axis=1), F)
        return float(top + np.log(total)), np.diag(pairs).copy(), pairs

    return sums


def why_not_flat(compatibility: Compatibility, l: int) -> str:
    """What stands in the way of equal beliefs, in words."""
    F, chain = compatibility.F, compatibility.chain
    if chain is not None and chain.widest() * l > F:
        what = "one class" if isinstance(compatibility.structure, Classes) else "one window narrower than d"
        reason = f"{what} holds {chain.widest()} values, more than F/l = {F}/{l}"
    else:
        reason = "no weights make all values equally likely in this distance"
    return f"The flat design does not exist here ({reason}). "
