"""Algorithms 1 and 3 of paper 003: decoys are drawn one after the other.

`simple` is Algorithm 1: each decoy uniform among those that leave the set completable.

Guarantee: every set is feasible and no draw ends in a dead end, for any distance. Literally, Algorithm 1 can get
stuck as soon as F <= (l-1)(2d-1) on ranks; its roll-back rejects sets that could be completed. Here each step looks
ahead: on a chain by counting what still fits between the values drawn so far, otherwise by clique search.

`duplicate-processing` is Algorithm 3, in the only reading that gives the paper's equation 2. After each draw the
drawn value and the d - 1 nearest values *still available* on each side leave, on the circle of ranks. Every step then
has exactly 2d - 1 candidates fewer than the one before, and by symmetry every value at circular distance d or more
from the truth is in the set with the same probability (l-1) / (F-2d+1): equation 2. It needs F >= (l-1)(2d-1) + 1.

It leaks. Which decoys can follow depends on the order of the draws, so a set may be reachable from some of its
members only: at (F,l,d) = (11,3,3) a third of all published sets reveal the true value with certainty.
"""

# ruff: noqa: E741  l is the paper's letter

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from noren.designs.semantic.compatibility import Compatibility, InfeasibleDesign, Ranks
from noren.designs.semantic.law import CHUNK, Law, RowKernel, bit_rows, list_sets
from noren.errors import NorenError

LARGEST_L = {"semantic-simple": 16, "semantic-duplicate-processing": 10}
"""P(R | v) sums over the 2^l subsets of a set, or goes through the (l-1)! orders."""
PARTIAL_LIMIT = 20_000_000  # sets of l - 1 values whose sums take some seconds
_PAIR_TABLE = 1 << 23  # F^3 up to which the candidates after two values are kept


class Simple(Law):
    """P(R | v) = sum over the orders of R \\ {v} of the product of 1 / (number of candidates at each step)."""

    def __init__(self, compatibility: Compatibility, l: int) -> None:
        super().__init__(compatibility, l)
        chain = compatibility.chain
        if chain is not None:
            from noren.designs.semantic.kernels import gap_tables

            self._gaps = gap_tables(chain.after, chain.before)
        else:
            self._rows = bit_rows(compatibility.pairs)

    def likelihood(self, sets: NDArray) -> NDArray[np.float64]:
        out = np.ones((len(sets), self.l))
        if self.l == 1 or not len(sets):
            return out
        chain = self.compatibility.chain
        if chain is not None:
            from noren.designs.semantic.kernels import chain_simple_weights

            places = chain.place[sets]
            order = np.argsort(places, axis=1)
            values = np.empty_like(out)
            chain_simple_weights(np.take_along_axis(places, order, axis=1), self._gaps, values)
            np.put_along_axis(out, order, values, axis=1)
            return out
        from noren.designs.semantic.kernels import clique_candidates, sum_orders

        step = max(1, (1 << 22) >> self.l)
        for start in range(0, len(sets), step):
            part = np.ascontiguousarray(sets[start : start + step], np.int64)
            candidates = np.zeros((len(part), 1 << self.l), np.int64)
            clique_candidates(part, self._rows, candidates)
            sum_orders(candidates, out[start : start + step])
        return out

    def inclusion(self) -> NDArray[np.float64] | None:
        """On a chain, from the sets of l - 1 values before the last draw: far fewer than the published ones."""
        from noren.designs.semantic.kernels import chain_simple_inclusion

        chain = self.compatibility.chain
        if chain is None or self.l == 1:
            return None
        partial = list_sets(self.compatibility, self.l - 1, PARTIAL_LIMIT)
        if partial is None:
            return None
        out = np.zeros((self.F, self.F))
        for start in range(0, len(partial), CHUNK):
            places = np.sort(chain.place[partial[start : start + CHUNK]], axis=1)
            part = np.zeros_like(out)  # chunk by chunk, so that no long sum loses digits
            chain_simple_inclusion(places, chain.after, self._gaps, part)
            out += part
        return np.asarray((out / np.diag(out)[:, None])[np.ix_(chain.place, chain.place)])

    def words(self) -> int:
        return 2 * (self.l - 1)

    def kernel(self) -> RowKernel:
        chain = self.compatibility.chain
        if chain is not None:
            from noren.designs.semantic.kernels import chain_simple

            gaps = self._gaps
            return lambda words, codes, out: chain_simple(
                words, codes, chain.order, chain.place, chain.after, gaps, out
            )
        from noren.designs.semantic.kernels import clique_simple, first_steps, second_steps

        rows, l = self._rows, self.l
        first = first_steps(rows, l)
        keep = l > 3 and self.F**3 <= _PAIR_TABLE
        second = second_steps(rows, first, l) if keep else np.empty((0, 0, rows.shape[1]), np.uint64)
        return lambda words, codes, out: clique_simple(words, codes, rows, first, second, out)


WARNING = (
    "duplicate-processing leaks: some published sets can only come from some of their members, and a few reveal the "
    "true value with certainty. It is offered to reproduce the paper; use semantic-flat to protect people."
)


def check_circle(compatibility: Compatibility, l: int) -> None:
    """Raise unless the circle has room for l draws that each remove 2d - 1 values.

    Every value is known to have a set of l values (l d <= F), so that two values at this d, or l at d = 1, do fit.
    """
    if not isinstance(compatibility.structure, Ranks):
        raise NorenError(
            "duplicate-processing is defined on ranks only, and this distance is not one of ranks.",
            hint="Use distance 'ordinal', or the design 'flat', which knows every distance.",
        )
    F, step = compatibility.F, compatibility.step
    if (l - 1) * (2 * step - 1) + 1 <= F:
        return
    best_l, best_d = (F - 1) // (2 * step - 1) + 1, ((F - 1) // (l - 1) + 1) // 2
    raise InfeasibleDesign(
        f"duplicate-processing removes 2d-1 = {2 * step - 1} values at each draw: l = {l} needs at least "
        f"{(l - 1) * (2 * step - 1) + 1} values, and the domain has {F}",
        hint=f"l = {best_l} works at this d; d = {best_d} works at l = {l}; or use the design 'flat'.",
        codes=(),
        largest_l=best_l,
        largest_d=float(best_d),
    )


class DuplicateProcessing(Law):
    """P(R | v) = (number of orders in which R can have been drawn) / ((F-(2d-1)) (F-2(2d-1)) ...)."""

    def likelihood(self, sets: NDArray) -> NDArray[np.float64]:
        from noren.designs.semantic.kernels import duplicate_weights

        out = np.ones((len(sets), self.l))
        if self.l > 1 and len(sets):
            duplicate_weights(sets, self.F, self.compatibility.step, out)
        return out

    def words(self) -> int:
        return self.l - 1

    def kernel(self) -> RowKernel:
        """What is left after drawing index i of n values is again a circle, and begins at index i + step."""
        F, step = self.F, self.compatibility.step
        left = F - (2 * step - 1) * np.arange(self.l)  # values left before each draw

        def draw(words: NDArray, codes: NDArray, out: NDArray) -> NDArray[np.int64]:
            product = words[:, : self.l - 1].astype(np.uint64) * left[1:].astype(np.uint64)
            unfair = (product & np.uint64((1 << 32) - 1)) < np.uint64(1 << 32) % left[1:].astype(np.uint64)
            drawn = (product >> np.uint64(32)).astype(np.int64)
            values = np.empty(out.shape, np.int64)
            values[:, 0] = codes
            for k in range(1, self.l):
                x = drawn[:, k - 1]
                for t in range(k - 1, 0, -1):
                    x = (x + drawn[:, t - 1] + step) % left[t]
                values[:, k] = (x + values[:, 0] + step) % F
            out[:] = np.sort(values, axis=1)
            return np.flatnonzero(unfair.any(axis=1))

        return draw

    def inclusion(self) -> NDArray[np.float64]:
        step = self.compatibility.step
        offset = np.subtract.outer(np.arange(self.F), np.arange(self.F)) % self.F
        out = np.eye(self.F)
        if self.l > 1:
            out[np.minimum(offset, self.F - offset) >= step] = (self.l - 1) / (self.F - 2 * step + 1)
        return out
