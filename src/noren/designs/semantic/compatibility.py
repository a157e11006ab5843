"""Which values may be in one set, and how large the sets around a value can become.

Two values are compatible if their distance is at least d, up to a relative tolerance of 1e-9: 0.3 - 0.1 is less than
0.2 in floating point. Sets of pairwise compatible values are the cliques of that relation. On ranks, on any line of
numbers and between the classes of a tree they are *chains*: sort the values, and a set is feasible as soon as each
neighbouring pair is. Everything asked of a chain has a closed form or a short dynamic programme; any other distance
is answered by clique search: branch and bound with a greedy colouring as the bound.
"""

# ruff: noqa: E741  l is the paper's letter

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from noren.errors import NorenError, Problem


class Search:
    """Clique searches over one graph with a common budget of steps, so that a hard graph cannot hang a policy check."""

    def __init__(self, neighbours: Sequence[int], budget: int | None) -> None:
        self._neighbours = neighbours
        self.left = inf if budget is None else budget

    @property
    def exhausted(self) -> bool:
        """Return whether an answer may be too small because the budget was used up."""
        return self.left < 0

    def largest(self, inside: int, enough: int) -> int:
        """Return the size of the largest clique among the vertices of the bit set `inside`, or `enough` if it is
        reached.

        A clique takes at most one vertex of each colour, so vertices whose colour number does not reach beyond the
        best clique so far need not be tried (Tomita and Seki).
        """
        best = 0

        def expand(candidates: int, size: int) -> None:
            nonlocal best
            best = max(best, size)
            if not candidates or best >= enough or self.left < 0:
                return
            self.left -= 1
            for vertex, colours in reversed(self._colour_vertices(candidates)):
                if size + colours <= best or best >= enough:
                    return
                expand(candidates & self._neighbours[vertex], size + 1)
                candidates &= ~(1 << vertex)

        expand(inside, 0)
        return min(best, enough)

    def _colour_vertices(self, candidates: int) -> list[tuple[int, int]]:
        """Return the vertices in the order of their colours, each with the number of colours used so far."""
        out: list[tuple[int, int]] = []
        colour = 0
        while candidates:
            colour += 1
            free = candidates
            while free:
                vertex = (free & -free).bit_length() - 1
                out.append((vertex, colour))
                candidates &= ~(1 << vertex)
                free &= ~((1 << vertex) | self._neighbours[vertex])
        return out


TOLERANCE = 1e-9
SEARCH_STEPS = 50_000  # of clique search per question; some seconds


class _Structure(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Ranks(_Structure):
    """Compatible iff the positions in the domain differ by at least `step`."""

    kind: Literal["ranks"] = "ranks"
    step: int = Field(ge=1, description="Smallest difference of ranks inside a set: the paper's d on ranks.")


class Line(_Structure):
    """Compatible iff the numbers differ by at least the threshold."""

    kind: Literal["line"] = "line"
    positions: tuple[float, ...] = Field(description="Where each value lies, in domain order.")


class Classes(_Structure):
    """Compatible iff the classes differ."""

    kind: Literal["classes"] = "classes"
    class_of: tuple[int, ...] = Field(description="Class of each value, in domain order.")


class Table(_Structure):
    """Compatible as listed."""

    kind: Literal["matrix"] = "matrix"
    compatible: tuple[tuple[int, ...], ...] = Field(description="1 where two values may be in one set, else 0.")


Structure = Annotated[Ranks | Line | Classes | Table, Field(discriminator="kind")]


@dataclass(frozen=True)
class Chain:
    """An order of values in which i < j are compatible if and only if j >= after[i], equivalently i < before[j]."""

    order: NDArray[np.int64]  # code at each place
    place: NDArray[np.int64]  # place of each code
    after: NDArray[np.int64]
    before: NDArray[np.int64]

    @classmethod
    def from_positions(cls, positions: NDArray, threshold: float) -> Chain:
        order = np.argsort(positions, kind="stable").astype(np.int64)
        sorted_positions = np.asarray(positions, float)[order]
        least = threshold * (1 - TOLERANCE)
        n = len(order)
        after = np.full(n, n, np.int64)
        j = 0
        for i in range(n):
            j = max(j, i + 1)
            while j < n and sorted_positions[j] - sorted_positions[i] < least:
                j += 1
            after[i] = j
        place = np.empty(n, np.int64)
        place[order] = np.arange(n)
        return cls(order, place, after, np.searchsorted(after, np.arange(n), side="right").astype(np.int64))

    def largest(self) -> NDArray[np.int64]:
        """Return the size of the largest set around the value at each place: greedy to the right and to the left."""
        n = len(self.order)
        right, left = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
        for i in range(n - 1, -1, -1):
            right[i] = 1 + right[self.after[i]]
        for i in range(n):
            left[i + 1] = 1 + left[self.before[i]]  # left[i + 1]: a chain that ends at place i
        return right[:-1] + left[1:] - 1

    def widest(self) -> int:
        """Return the largest number of values in a window in which no two are compatible."""
        return int((self.after - np.arange(len(self.after))).max())


class InfeasibleDesign(NorenError):
    """Raised if no set of l values around some value exists; names the values by code."""

    def __init__(
        self, problem: str, *, hint: str, codes: Sequence[int], largest_l: int, largest_d: float | None
    ) -> None:
        self.codes = tuple(codes)
        self.largest_l = largest_l
        self.largest_d = largest_d
        self._problem = problem
        super().__init__(self._message([f"code {code}" for code in codes]), hint=hint)

    def problem(self, where: str, labels: Sequence[str | None]) -> Problem:
        """Return the error as a problem of a policy, with labels instead of codes; a label of None is not shown."""
        shown = [repr(label) for code in self.codes if (label := labels[code]) is not None]
        hidden = "" if len(shown) == len(self.codes) else " Values of fewer than five records are not shown."
        return Problem(where, self._message(shown) + hidden, self.hint or "")

    def _message(self, names: Sequence[str]) -> str:
        if not names:
            return f"{self._problem}."
        return f"{self._problem}: {', '.join(names[:10])}{', ...' if len(names) > 10 else ''}."


@dataclass(frozen=True)
class Compatibility:
    """The compatible pairs of F values at one threshold, and the structure found in them."""

    F: int
    threshold: float
    structure: Ranks | Line | Classes | Table
    distances: NDArray[np.float64] | None = None

    @classmethod
    def from_distances(cls, distances: NDArray, threshold: float) -> Compatibility:
        """The simplest structure that gives exactly these compatible pairs."""
        distances = np.asarray(distances, float)
        F = len(distances)
        if distances.shape != (F, F) or not np.array_equal(distances, distances.T) or np.any(distances < 0):
            raise ValueError("distances must be a symmetric matrix without negative entries")
        if not threshold > 0:
            raise ValueError(f"the smallest distance d inside a set must be positive. Got {threshold} instead.")
        pairs = distances >= threshold * (1 - TOLERANCE)
        np.fill_diagonal(pairs, False)
        structure = _ranks(pairs) or _classes(pairs) or _line(distances, pairs, threshold) or _table(pairs)
        return cls(F, float(threshold), structure, distances)

    @cached_property
    def chain(self) -> Chain | None:
        """Return the order in which sets are chains; None for a general matrix."""
        if isinstance(self.structure, Ranks):
            return Chain.from_positions(np.arange(self.F), self.structure.step)
        if isinstance(self.structure, Line):
            return Chain.from_positions(np.array(self.structure.positions), self.threshold)
        if isinstance(self.structure, Classes):
            return Chain.from_positions(np.array(self.structure.class_of), 1)
        return None

    @cached_property
    def pairs(self) -> NDArray[np.bool_]:
        """Return an (F, F) array of compatible values."""
        if isinstance(self.structure, Table):
            return np.array(self.structure.compatible, bool)
        assert self.chain is not None
        place, after = self.chain.place, self.chain.after
        low = np.minimum(place[:, None], place[None, :])
        return np.asarray(np.maximum(place[:, None], place[None, :]) >= after[low])

    @property
    def step(self) -> int:
        """Return the paper's d, in ranks."""
        assert isinstance(self.structure, Ranks)
        return self.structure.step

    def largest_sets(self) -> NDArray[np.int64]:
        """Return for every value the size of the largest set around it.

        On ranks 1 + floor((i-1)/d) + floor((F-i)/d) for the i-th value (the paper's Theorem 5.1 has this misprinted).
        """
        sizes, proven = self._largest_sets()
        if not proven:
            raise _undecided_error()
        return sizes

    def without_partners(self, l: int) -> NDArray[np.int64]:
        """Return the codes of the values that no set of l values contains."""
        if self.chain is not None:
            return np.flatnonzero(self.largest_sets() < l)
        search = Search(self.bits, SEARCH_STEPS)
        alone = [v for v in range(self.F) if search.largest(self.bits[v], l - 1) < l - 1]
        if alone and search.exhausted:
            raise _undecided_error()
        return np.array(alone, np.int64)

    def largest_l(self) -> int:
        """Return the largest set size at this threshold that works for every value."""
        return int(self.largest_sets().min())

    def _largest_sets(self) -> tuple[NDArray[np.int64], bool]:
        """Return the sizes found, and whether they are proven to be the largest."""
        if self.chain is not None:
            return self.chain.largest()[self.chain.place], True
        search = Search(self.bits, SEARCH_STEPS)
        sizes = [1 + search.largest(self.bits[v], self.F) for v in range(self.F)]
        return np.array(sizes), not search.exhausted

    def largest_threshold(self, l: int) -> float | None:
        """Return the largest threshold at which every value has a set of l values; None if no positive one works."""
        if self.distances is None:
            raise ValueError("the largest threshold needs the distances, and a published design does not keep them")
        steps = np.unique(self.distances[self.distances > 0])
        low, high = -1, len(steps) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if Compatibility.from_distances(self.distances, steps[middle]).without_partners(l).size:
                high = middle - 1
            else:
                low = middle
        return None if low < 0 else float(steps[low])

    def identifiable(self, l: int) -> bool:
        """Return whether any estimator can recover counts from sets.

        F >= l d + 1 on ranks, at least l + 1 classes in a tree; otherwise full rank of the matrix that says which
        feasible sets contain which values (every design over all feasible sets has that rank).
        """
        if isinstance(self.structure, Ranks):
            return self.F == 1 or l == 1 or l * self.step + 1 <= self.F
        if isinstance(self.structure, Classes):
            return self.F == 1 or l == 1 or len(set(self.structure.class_of)) >= l + 1
        from noren.designs.semantic.law import inclusion
        from noren.designs.semantic.products import Product

        return bool(np.linalg.matrix_rank(inclusion(Product(self, l)).matrix) == self.F)

    def check(self, l: int) -> None:
        """Raise unless every value has a set of l values; the error names the values and what would work."""
        alone = self.without_partners(l)
        if not alone.size:
            return
        best = int(self._largest_sets()[0].min())
        try:
            widest = None if self.distances is None else self.largest_threshold(l)
        except NorenError:
            widest = None
        ways = [f"l = {best} works at d = {self.threshold:.12g}"] if best > 1 else []
        ways += [] if widest is None else [f"d = {widest:.12g} works at l = {l}"]
        raise InfeasibleDesign(
            f"{alone.size} of {self.F} values cannot be in a set of {l} values that are all {self.threshold:.12g} "
            "or more apart",
            hint="; ".join(ways) + "." if ways else "No set size above 1 works with this distance.",
            codes=alone.tolist(),
            largest_l=best,
            largest_d=widest,
        )

    @cached_property
    def bits(self) -> list[int]:
        """Row v as an integer whose bit u says whether u and v are compatible."""
        return [int.from_bytes(np.packbits(row, bitorder="little").tobytes(), "little") for row in self.pairs]


def _undecided_error() -> NorenError:
    return NorenError(
        f"a search of {SEARCH_STEPS:,} steps did not find how large the sets of this distance matrix can be.",
        hint="Ask for a smaller l, or use a distance along a line or a tree.",
    )


def _ranks(pairs: NDArray[np.bool_]) -> Ranks | None:
    F = len(pairs)
    apart = np.abs(np.subtract.outer(np.arange(F), np.arange(F)))
    step = F if not pairs[0].any() else int(np.flatnonzero(pairs[0])[0])
    return Ranks(step=step) if step and np.array_equal(pairs, apart >= step) else None


def _classes(pairs: NDArray[np.bool_]) -> Classes | None:
    """Find classes: incompatibility is an equivalence, and the row of each value is that of its first companion."""
    first = np.argmin(pairs, axis=1)
    if not np.array_equal(pairs, first[:, None] != first[None, :]):
        return None
    return Classes(class_of=tuple(np.unique(first, return_inverse=True)[1].tolist()))


def _line(distances: NDArray, pairs: NDArray[np.bool_], threshold: float) -> Line | None:
    """Find positions on a line: the distances from one of the two values farthest apart."""
    end = int(np.unravel_index(np.argmax(distances), distances.shape)[0])
    positions = distances[end]
    gaps = np.abs(positions[:, None] - positions[None, :])
    found = gaps >= threshold * (1 - TOLERANCE)
    if not np.array_equal(found, pairs):
        return None
    return Line(positions=tuple(positions.tolist()))


def _table(pairs: NDArray[np.bool_]) -> Table:
    return Table(compatible=tuple(tuple(row) for row in pairs.astype(int).tolist()))
