"""What every semantic design knows about itself: how it draws, P(R | v), and what sums over all its sets come to."""

# ruff: noqa: E741  l is the paper's letter

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from noren.designs.draw import _Plan
from noren.designs.semantic.compatibility import Compatibility
from noren.statements.set_cells import code_dtype

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
    from noren.designs.semantic.kernels.chains import enumerate_chains, messages
    from noren.designs.semantic.kernels.cliques import enumerate_cliques

    dtype = code_dtype(compatibility.F)
    chain = compatibility.chain
    if chain is None:
        rows = bit_rows(compatibility.pairs)
        count = enumerate_cliques(rows, np.empty((0, l), dtype), limit)
        if count > limit:
            return None
        sets = np.empty((count, l), dtype)
        enumerate_cliques(rows, sets, limit)
        return sets
    count = float(messages(np.ones(compatibility.F), chain.after, chain.before, l)[0][l - 1, -1])
    if count > limit:
        return None
    places = np.empty((int(count), l), dtype)
    if len(places):
        enumerate_chains(chain.after, places)
    return (
        places
        if np.array_equal(chain.order, np.arange(compatibility.F))
        else np.sort(chain.order[places].astype(dtype), axis=1)
    )
