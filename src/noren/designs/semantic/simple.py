"""Algorithm 1 of paper 003: decoys one after the other, each uniform among those that leave the set completable.

Guarantee: every set is feasible and no draw ends in a dead end, for any distance. Literally, Algorithm 1 can get
stuck as soon as F <= (l-1)(2d-1) on ranks; its roll-back rejects sets that could be completed. Here each step looks
ahead: on a chain by counting what still fits between the values drawn so far, otherwise by clique search.
"""

# ruff: noqa: E741  l is the paper's letter

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from noren.designs.semantic.compatibility import Compatibility
from noren.designs.semantic.law import CHUNK, Law, RowKernel, bit_rows, list_sets

LARGEST_L = 16  # P(R | v) sums over the 2^l subsets of a set
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
