"""Algorithms 1 and 3 of paper 003, which draw decoys one after the other.

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

from collections.abc import Callable
from math import prod

import numpy as np
from numpy.typing import NDArray

from noren.designs.draw import unfair
from noren.designs.semantic.compatibility import Chain, Compatibility, InfeasibleDesign, Ranks, Search
from noren.designs.semantic.law import Law, RowKernel
from noren.errors import NorenError

HALF = np.uint64(32)
MOST_CHANCES = 1 << 22  # of subsets of sets, worked out together
MOST_KNOWN = 1 << 16  # sets of candidates that are kept
Pick = Callable[[NDArray[np.int64]], NDArray[np.int64]]
"""From how many candidates there are, the number of the one that is drawn."""

LARGEST_L = {"semantic-simple": 16, "semantic-duplicate-processing": 10}
"""P(R | v) sums over the 2^l subsets of a set, or goes through the (l-1)! orders."""


class Simple(Law):
    """P(R | v) = sum over the orders of R \\ {v} of the product of 1 / (number of candidates at each step)."""

    def __init__(self, compatibility: Compatibility, l: int) -> None:
        super().__init__(compatibility, l)
        chain = compatibility.chain
        self._steps: ChainSteps | GraphSteps = GraphSteps(compatibility) if chain is None else ChainSteps(chain)

    def likelihood(self, sets: NDArray) -> NDArray[np.float64]:
        """Compute the likelihood from the probability that a subset grows to the whole set: the mean over its
        candidates."""
        l = self.l
        if l == 1:
            return np.ones((len(sets), 1))
        chances = [np.empty((0, l))]
        size = max(1, MOST_CHANCES >> l)
        for start in range(0, len(sets), size):
            part = sets[start : start + size].astype(np.int64)
            grows = np.ones((1 << l, len(part)))
            for subset in range((1 << l) - 2, 0, -1):
                inside = [j for j in range(l) if subset >> j & 1]
                total = sum(grows[subset | 1 << j] for j in range(l) if not subset >> j & 1)
                grows[subset] = total / self._steps.count_candidates(part[:, inside], l - len(inside))
            chances.append(grows[[1 << j for j in range(l)]].T)
        return np.concatenate(chances)

    def words(self) -> int:
        return 2 * (self.l - 1)

    def kernel(self) -> RowKernel:
        def draw(words: NDArray, codes: NDArray, out: NDArray) -> None:
            high, low = words[:, ::2].astype(np.uint64), words[:, 1::2].astype(np.uint64)
            values = codes.astype(np.int64)[:, None]
            for k in range(self.l - 1):
                # 64 bits and no redrawing, which would favour some paths: what is left depends on the steps before
                def pick(n: NDArray, k: int = k) -> NDArray[np.int64]:
                    size = n.astype(np.uint64)
                    return ((high[:, k] * size + (low[:, k] * size >> HALF)) >> HALF).astype(np.int64)

                values = np.column_stack([values, self._steps.draw_candidate(values, self.l - 1 - k, pick)])
            out[:] = np.sort(values, axis=1)

        return draw


class GraphSteps:
    """The candidates of Algorithm 1 under any distance, in the order of their codes."""

    def __init__(self, compatibility: Compatibility) -> None:
        self._pairs, self._bits = compatibility.pairs, compatibility.bits
        self._known: dict[tuple[bytes, int], NDArray[np.bool_]] = {}

    def count_candidates(self, members: NDArray[np.int64], missing: int) -> NDArray[np.int64]:
        return np.asarray(self._candidates(members, missing).sum(axis=1))

    def draw_candidate(self, members: NDArray[np.int64], missing: int, pick: Pick) -> NDArray[np.int64]:
        order = self._candidates(members, missing).cumsum(axis=1)
        return np.asarray((order <= pick(order[:, -1])[:, None]).sum(axis=1))

    def _candidates(self, members: NDArray[np.int64], missing: int) -> NDArray[np.bool_]:
        """Return (sets, F): the values with which a set can still be completed by `missing` more values."""
        common = np.ones((len(members), len(self._pairs)), bool)
        for column in members.T:
            common &= self._pairs[column]
        if missing == 1:
            return common
        if missing == 2:
            return np.asarray(common & (common.astype(np.float32) @ self._pairs.astype(np.float32) > 0))
        packed, number = np.unique(np.packbits(common, axis=1, bitorder="little"), axis=0, return_inverse=True)
        return np.stack([self._growing(row.tobytes(), missing) for row in packed])[number.ravel()]

    def _growing(self, common: bytes, missing: int) -> NDArray[np.bool_]:
        """Return the members of a bit set that are in a clique of so many of its members."""
        known = self._known.get((common, missing))
        if known is None:
            inside, search = int.from_bytes(common, "little"), Search(self._bits, None)
            grows = [
                bool(inside >> u & 1) and search.largest(inside & row, missing - 1) >= missing - 1
                for u, row in enumerate(self._bits)
            ]
            known = np.array(grows)
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[common, missing] = known
        return known


class ChainSteps:
    """The candidates of Algorithm 1 on a chain, in its order, by what fits into the gaps between the values drawn.

    Gap (a, b) lies between places a - 1 and b - 1; 0 is left and F + 1 right of all. A value in a gap costs one or two
    of its capacity, never more.
    """

    def __init__(self, chain: Chain) -> None:
        self._chain, F = chain, len(chain.order)
        self._first = np.concatenate([[0], chain.after, [F]])
        end = np.concatenate([[0], chain.before, [F]])
        fit = np.zeros((F + 1, F + 1), np.int64)  # how many values fit into places s .. e - 1
        for s in range(F - 1, -1, -1):
            fit[s, s + 1 :] = 1 + fit[chain.after[s], s + 1 :]
        self._capacity = fit[self._first[:, None], end]
        self._free = np.maximum(0, end - self._first[:, None])  # places that are compatible with both ends
        self._tight = np.array(
            [self._spares_room(np.full(F + 2, a), np.arange(F + 2)).sum(axis=1) for a in range(F + 2)]
        )

    def _spares_room(self, a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return (gaps, F): the positions inside each gap that reduce its capacity by one."""
        places, capacity = np.arange(len(self._chain.order)), self._capacity
        left = self._first[a][:, None]
        inside = (places >= left) & (places < left + self._free[a, b][:, None])
        return np.asarray(inside & (capacity[a, 1:-1] + capacity[1:-1, b].T + 1 == capacity[a, b][:, None]))

    def _gaps(
        self, members: NDArray[np.int64], missing: int
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
        """Return the gaps between the members, whether there is spare capacity, and the candidates in every gap."""
        ends = np.zeros((len(members), members.shape[1] + 2), np.int64)
        ends[:, 1:-1], ends[:, -1] = np.sort(self._chain.place[members] + 1, axis=1), len(self._chain.order) + 1
        a, b = ends[:, :-1], ends[:, 1:]
        spare = self._capacity[a, b].sum(axis=1) > missing
        return ends, spare, np.where(spare[:, None], self._free[a, b], self._tight[a, b])

    def count_candidates(self, members: NDArray[np.int64], missing: int) -> NDArray[np.int64]:
        return np.asarray(self._gaps(members, missing)[2].sum(axis=1))

    def draw_candidate(self, members: NDArray[np.int64], missing: int, pick: Pick) -> NDArray[np.int64]:
        ends, spare, counts = self._gaps(members, missing)
        sums = counts.cumsum(axis=1)
        picked = pick(sums[:, -1])
        rows, gap = np.arange(len(ends)), (sums <= picked[:, None]).sum(axis=1)
        a, b, inside = ends[rows, gap], ends[rows, gap + 1], picked - (sums - counts)[rows, gap]
        place = self._first[a] + inside
        tight = np.flatnonzero(~spare)
        place[tight] = (self._spares_room(a[tight], b[tight]).cumsum(axis=1) <= inside[tight, None]).sum(axis=1)
        return np.asarray(self._chain.order[place])


WARNING = (
    "duplicate-processing leaks: some of its sets can come from only some of their members, and a few reveal the "
    "true value with certainty. It exists to reproduce the paper; use semantic-flat to protect people."
)


def check_circle(compatibility: Compatibility, l: int) -> None:
    """Raise if the circle has no room for l draws that each remove 2d - 1 values.

    Every value is known to have a set of l values (l d <= F), so that two values at this d, or l at d = 1, do fit.
    """
    if not isinstance(compatibility.structure, Ranks):
        raise NorenError(
            "duplicate-processing is defined on ranks only, and this distance is not one of ranks.",
            hint="Use distance 'ordinal', or the design 'flat', which takes every distance.",
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
        F, step = self.F, self.compatibility.step
        total = prod(F - k * (2 * step - 1) for k in range(1, self.l))
        wide = sets.astype(np.int64)
        after = (wide[:, None, :] - wide[:, :, None] - step) % F  # [set, truth, decoy]
        orders = [self._count_orders(np.delete(after[:, m], m, axis=1), 1) for m in range(self.l)]
        return np.stack(orders, axis=1) / total

    def _count_orders(self, index: NDArray[np.int64], drawn: int) -> NDArray[np.int64]:
        """Return in how many orders the values at these positions of every circle can be drawn.

        Place x of a circle of n values is, after place i was drawn, place x - i - step of the next circle, or gone.
        """
        step = self.compatibility.step
        size = self.F - drawn * (2 * step - 1)
        out = np.asarray((index < size).all(axis=1), np.int64)
        rows = np.flatnonzero(out)
        if index.shape[1] > 1 and len(rows):
            left = index[rows]
            others = [(np.delete(left, c, axis=1) - left[:, [c]] - step) % size for c in range(left.shape[1])]
            out[rows] = np.sum([self._count_orders(one, drawn + 1) for one in others], axis=0)
        return out

    def words(self) -> int:
        return self.l - 1

    def kernel(self) -> RowKernel:
        """What is left after drawing index i of n values is again a circle, and begins at index i + step."""
        F, step = self.F, self.compatibility.step
        left = F - (2 * step - 1) * np.arange(self.l)  # values left before each draw

        def draw(words: NDArray, codes: NDArray, out: NDArray) -> NDArray[np.int64]:
            product = words[:, : self.l - 1].astype(np.uint64) * left[1:].astype(np.uint64)
            drawn = (product >> HALF).astype(np.int64)
            values = np.empty(out.shape, np.int64)
            values[:, 0] = codes
            for k in range(1, self.l):
                x = drawn[:, k - 1]
                for t in range(k - 1, 0, -1):
                    x = (x + drawn[:, t - 1] + step) % left[t]
                values[:, k] = (x + values[:, 0] + step) % F
            out[:] = np.sort(values, axis=1)
            return np.flatnonzero(unfair(product, left[1:]).any(axis=1))

        return draw

    def inclusion(self) -> NDArray[np.float64]:
        step = self.compatibility.step
        offset = np.subtract.outer(np.arange(self.F), np.arange(self.F)) % self.F
        out = np.eye(self.F)
        if self.l > 1:
            out[np.minimum(offset, self.F - offset) >= step] = (self.l - 1) / (self.F - 2 * step + 1)
        return out
