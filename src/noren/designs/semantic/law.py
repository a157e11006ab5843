"""What every semantic design knows about itself: how it draws, P(R | v), and what sums over all its sets come to."""

# ruff: noqa: E741  l is the paper's letter

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from noren.designs.draw import _Plan
from noren.designs.semantic.compatibility import Chain, Compatibility
from noren.statements.set_cells import code_dtype

if TYPE_CHECKING:
    from scipy.sparse import csr_array

LISTING_LIMIT = 5_000_000  # sets; up to here sums run over all of them
CHUNK = 1 << 17
_TWO_32 = 1 << 32
_NONE = np.empty(0, np.int64)

RowKernel = Callable[[NDArray, NDArray, NDArray], NDArray[np.int64] | None]
"""(words, true codes, rows to fill with ascending codes) -> cells to draw again, or None."""


@dataclass(frozen=True)
class SemanticPlan(_Plan):
    """A plan whose kernel writes rows of codes; up to 64 values they become masks."""

    rows: RowKernel | None = None

    def _attempt(self, words: NDArray[np.uint32], codes: NDArray, out: NDArray) -> NDArray[np.int64]:
        from noren.statements.kernels import codes_to_masks

        assert self.rows is not None
        rows = out if out.ndim == 2 else np.empty((len(codes), self.eta), code_dtype(self.d))
        again = self.rows(words, codes, rows)
        if out.ndim == 1:
            codes_to_masks(rows, out)
        return _NONE if again is None else again


class Law(ABC):
    """P(R | v) of one design over one compatibility, with every way to sum over it that is exact."""

    def __init__(self, compatibility: Compatibility, l: int) -> None:
        self.compatibility = compatibility
        self.F = compatibility.F
        self.l = l

    @abstractmethod
    def likelihood(self, sets: NDArray) -> NDArray[np.float64]:
        """P(R | v) for each feasible set, a row of ascending codes, and each of its members v."""

    @abstractmethod
    def words(self) -> int:
        """How many 32-bit words one draw takes."""

    @abstractmethod
    def kernel(self) -> RowKernel:
        """The compiled draw."""

    @cached_property
    def plan(self) -> SemanticPlan:
        if self.l in (1, self.F):
            return SemanticPlan(self.F, self.l, need=0, heads=_TWO_32)
        return SemanticPlan(self.F, self.l, need=self.words(), heads=_TWO_32, rows=self.kernel())

    def inclusion(self) -> NDArray[np.float64] | None:
        """P(u in R | v) where a closed form or dynamic programme gives it."""
        return None

    def second_moments(self, scores: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """E[(sum of scores over R)^2 | v] where a dynamic programme gives it."""
        return None

    def worst_posterior(self, prior: NDArray[np.float64]) -> float | None:
        """The largest P(v | R) over all sets, where a dynamic programme gives it."""
        return None

    def listed(self) -> Iterator[tuple[NDArray, NDArray[np.float64]]] | None:
        """All feasible sets with P(R | v), in chunks; None where there are too many."""
        sets = list_sets(self.compatibility, self.l, LISTING_LIMIT)
        return None if sets is None else self._chunks(sets)

    def _chunks(self, sets: NDArray) -> Iterator[tuple[NDArray, NDArray[np.float64]]]:
        for start in range(0, len(sets), CHUNK):
            part = sets[start : start + CHUNK]
            yield part, self.likelihood(part)

    def sample(self, codes: NDArray, rng: np.random.Generator) -> NDArray:
        """Rows of codes drawn for these true codes from a statistical generator: for sums, never for a release."""
        out = np.empty((len(codes), self.l), code_dtype(self.F))
        if self.plan.rows is None:
            out[:] = np.arange(self.F) if self.l == self.F else codes[:, None]
            return out
        left = np.arange(len(codes))
        while left.size:
            words = rng.integers(0, _TWO_32, (left.size, self.plan.need), np.uint32)
            rows = np.empty((left.size, self.l), out.dtype)
            again = self.plan.rows(words, codes[left].astype(out.dtype), rows)
            out[left] = rows
            left = _NONE if again is None else left[again]
        return out


def spread_members(sets: NDArray, values: NDArray, F: int) -> csr_array:
    """A sparse matrix with a row for each set: values[i, j] at the column of member sets[i, j]."""
    from scipy.sparse import csr_array

    n, l = sets.shape
    return csr_array((values.ravel(), sets.ravel().astype(np.int64), np.arange(n + 1) * l), shape=(n, F))


def sum_pairs(sets: NDArray, likelihood: NDArray[np.float64], F: int) -> NDArray[np.float64]:
    """[v, u]: sum of P(set | v) over the listed sets that contain v and u."""
    members = spread_members(sets, np.ones(sets.shape), F)
    return np.asarray((spread_members(sets, likelihood, F).T @ members).todense())


def least_sums(costs: NDArray[np.float64], before: NDArray[np.int64], l: int) -> NDArray[np.float64]:
    """(l, F + 1): the least sum of k values that are pairwise compatible, among the first i of a chain."""
    out = np.full((l, len(costs) + 1), np.inf)
    out[0] = 0.0
    for k in range(1, l):
        out[k, 1:] = np.minimum.accumulate(costs + out[k - 1, before])
    return out


def bit_rows(pairs: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Rows of a matrix of 0 and 1 as 64-bit words."""
    F = len(pairs)
    wide = np.zeros((F, -(-F // 64) * 64), bool)
    wide[:, :F] = pairs
    return np.ascontiguousarray(np.packbits(wide, axis=1, bitorder="little").view("<u8"))


def list_sets(compatibility: Compatibility, l: int, limit: int) -> NDArray | None:
    """All feasible sets of l values as rows of ascending codes; None if there are more than the limit."""
    dtype = code_dtype(compatibility.F)
    chain = compatibility.chain
    if chain is None:
        from noren.designs.semantic.kernels import enumerate_cliques

        rows = bit_rows(compatibility.pairs)
        count = enumerate_cliques(rows, np.empty((0, l), dtype), limit)
        if count > limit:
            return None
        sets = np.empty((count, l), dtype)
        enumerate_cliques(rows, sets, limit)
        return sets
    right = set_weights(np.ones(compatibility.F), chain, l)[0]
    if right[l - 1, -1] > limit:
        return None
    places = _list_chains(chain, right > 0, l).astype(dtype)
    if np.array_equal(chain.order, np.arange(compatibility.F)):
        return places
    return np.sort(chain.order[places].astype(dtype), axis=1)


def _list_chains(chain: Chain, fits: NDArray[np.bool_], l: int) -> NDArray[np.int64]:
    """All sets of l places in lexicographic order, grown place by place where `fits` says that the rest fits."""
    F = len(chain.after)
    out, first = np.empty((1, 0), np.int64), np.zeros(1, np.int64)
    for k in range(l):
        row = np.repeat(np.arange(len(out)), F - first)
        ends = np.cumsum(F - first)
        place = np.arange(len(row)) - np.repeat(ends - F, F - first)
        if k < l - 1:
            kept = fits[l - 2 - k, F - chain.after[place]]
            row, place = row[kept], place[kept]
        out = np.column_stack([out[row], place])
        first = chain.after[place]
    return out


def set_weights(weights: NDArray[np.float64], chain: Chain, l: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """right[k, i]: weight of all sets of k + 1 of the last i places, left[k, i]: of the first i.

    Both are (l, F + 1) running sums from their own end, so that small sums at an end keep all their digits.
    """
    F = len(weights)
    right, left = np.zeros((l, F + 1)), np.zeros((l, F + 1))
    before, after = chain.before, (F - chain.after)[::-1]
    for k in range(l):
        left[k, 1:] = np.cumsum(weights * (left[k - 1, before] if k else 1.0))
        right[k, 1:] = np.cumsum(weights[::-1] * (right[k - 1, after] if k else 1.0))
    return right, left


def ways_beside(chain: Chain, right: NDArray[np.float64], left: NDArray[np.float64]) -> NDArray[np.float64]:
    """[v, k]: weight of the others in sets that contain v and k places to its left, without the weight of v."""
    l, F = right.shape[0], len(chain.after)
    one = np.ones((F, 1))
    before = np.hstack([one, left[: l - 1, chain.before].T])
    after = np.hstack([one, right[: l - 1, F - chain.after].T])
    return np.asarray(before * after[:, ::-1])


def pair_weights(
    weights: NDArray[np.float64], chain: Chain, right: NDArray[np.float64], left: NDArray[np.float64]
) -> NDArray[np.float64]:
    """[v, u]: weight of the sets that contain both places; the diagonal has the sets that contain v."""
    l, F = right.shape[0], len(weights)
    before = np.vstack([np.ones(F), left[: l - 1, chain.before]])  # [k, v]: k places left of v
    after = np.vstack([np.ones(F), right[: l - 1, F - chain.after]])
    upper = np.zeros((F, F))
    step = np.where(np.arange(F) >= chain.after[:, None], weights, 0.0)  # from v to u with no place between them
    for between in range(l - 1):
        rest = l - 1 - between
        upper += step * (before[:rest].T @ after[:rest][::-1])
        sums = np.hstack([np.zeros((F, 1)), np.cumsum(step, axis=1)])
        step = weights * sums[:, chain.before]
    upper *= weights[:, None]
    return np.asarray(upper + upper.T + np.diag(weights * ways_beside(chain, right, left).sum(axis=1)))


def score_moments(
    weights: NDArray[np.float64], scores: NDArray[np.float64], near: NDArray[np.int64], l: int
) -> NDArray[np.float64]:
    """[p, k, g, i]: sum of weight * (sum of scores[g])^p over the sets of k of the first i places, p = 0, 1, 2.

    `near[i]` places before place i are compatible with it.
    """
    sums = np.zeros((3, l, len(scores), len(weights) + 1))
    sums[0, 0] = 1.0
    for k in range(1, l):
        m0, m1, m2 = sums[:, k - 1][:, :, near]
        grown = (m0, m1 + scores * m0, m2 + 2.0 * scores * m1 + scores**2 * m0)
        sums[:, k, :, 1:] = np.cumsum(weights * np.stack(grown), axis=2)
    return sums
