"""The distinct tuples of published cells, sorted and counted, and the sums over them that every estimator needs.

Product sets of sorted tuples as sparse matrices, over which every step of EM sums:

    x_c <- sum_i x_c L_i(c) / sum_g x_g L_i(g),      L_i(c) = prod_j P(cell_ij | c_j)

P(cell | value) is the design's for a drawn cell, 1 for a general value that covers the value (coarsening at random),
c_g(v) / N_v for a group. To the maximum EM takes long steps: every third one extrapolates the path (SQUAREM, on
logarithms).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from noren.ahead import side_by_side
from noren.ragged import chosen, first_of, offsets_of, row_numbers
from noren.statements import Likelihood

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from noren.estimates.counts.held_out import Held

    Work = Callable[[slice, Sequence[csr_array]], tuple[NDArray[np.float64], float]]


Floats = NDArray[np.float64]
BLOCKS = 4  # of large tables: a fixed number, so that sums do not depend on the machine
BLOCK_WORK = 500_000  # below, threads cost more than they save
BLOCK_CELLS = 8_000_000  # numbers that one block works on at once
PRIVATE_CELLS = 50_000_000  # for all blocks that are worked on together
KEPT_ENTRIES = 60_000_000  # of sparse matrices that are kept; more are made anew for every pass
LEAST = 1e-300


class Products:
    """The possible combinations of each tuple of codes: the product of its codes' rows, each over one axis of a table.

    Tuples share their beginnings: the `depth` first axes are summed over once for every different beginning, one matrix
    for each axis, and the others tuple by tuple in one matrix, whose rows list their cells. Sums over product sets go
    through the matrices, what tuples give to their cells through the same ones transposed. `work` is roughly how many
    additions a pass takes, at the depth that makes it least.
    """

    def __init__(
        self, ids: NDArray, rows: Sequence[Likelihood], shape: Sequence[int], depth: int | None = None
    ) -> None:
        self.ids, self.rows, self.shape = ids, rows, tuple(shape)
        self._kept: dict[tuple[int, int], list[csr_array]] = {}
        self._blocked: dict[int, list[tuple[int, int]]] = {}
        self.depth, self.work, self.entries = self._cheapest(depth)

    def _cheapest(self, depth: int | None) -> tuple[int, float, float]:
        """Return the number of axes to share (unless given), the work of a pass, and the entries of the matrix of
        tuples."""
        lengths = [rows.lengths[self.ids[:, k]].astype(float) for k, rows in enumerate(self.rows)]
        changed, shared, leaves, costs = np.arange(len(self.ids)) == 0, 0.0, list[float](), list[float]()
        for k in range(len(self.shape)):
            leaves.append(float(np.prod(lengths[k:], axis=0).sum()))
            costs.append(shared + leaves[k] * (1.6 if k < len(self.shape) - 1 else 1.0))
            changed[1:] |= self.ids[1:, k] != self.ids[:-1, k]
            shared += float((lengths[k][changed] + 1).sum()) * (3 + prod(self.shape[k + 1 :]) / 4)
        leaves, costs = [*leaves, float(len(self.ids))], [*costs, shared + len(self.ids)]
        depth = int(np.argmin(costs[: max(1, len(self.shape))])) if depth is None else depth
        return depth, costs[depth], leaves[depth]

    def scatter(self, amounts: Floats) -> Floats:
        """Add every tuple's amount times its weights to the cells of its product set."""
        return self.add_blocks(lambda rows, through: (sum_cells(through, amounts[rows, None]), 0.0))[0].ravel()

    def add_blocks(self, work: Work, lanes: int = 1) -> tuple[Floats, float]:
        """Sum what the work makes of blocks of tuples and their matrices: a table (cells, lanes) and a number."""
        table, value = np.zeros((prod(self.shape), lanes)), 0.0
        blocks = self._blocks(lanes)
        if len(blocks) == 1:
            return work(slice(*blocks[0]), self.matrices(*blocks[0]))
        step = BLOCKS if table.size * BLOCKS <= PRIVATE_CELLS else 1
        for first in range(0, len(blocks), step):
            some = blocks[first : first + step]
            for part, score in side_by_side(lambda block: work(slice(*block), self.matrices(*block)), some):
                table, value = table + part, value + score
        return table, value

    def _blocks(self, lanes: int) -> list[tuple[int, int]]:
        """Return where the tuples are cut, so that memory stays small and threads have work."""
        if lanes in self._blocked:
            return self._blocked[lanes]
        wide = [prod(self.shape[k + 1 :]) * lanes for k in range(self.depth)]
        changed, most = np.zeros(max(len(self.ids) - 1, 0), np.bool_), max(self.entries, len(self.ids) * lanes)
        for k, rest in enumerate(wide):
            changed |= self.ids[1:, k] != self.ids[:-1, k]
            most = max(most, (1 + int(changed.sum())) * rest)
        count = max(BLOCKS if self.work * lanes > BLOCK_WORK else 1, int(-(-most // BLOCK_CELLS)))
        edges = np.linspace(0, len(self.ids), count + 1).astype(int).tolist()
        self._blocked[lanes] = [(start, stop) for start, stop in pairwise(edges) if stop > start]
        return self._blocked[lanes]

    def matrices(self, start: int, stop: int) -> list[csr_array]:
        """Return the sparse matrices of the shared axes, and one for the others."""
        if (start, stop) in self._kept:
            return self._kept[start, stop]
        from scipy.sparse import csr_array

        ids, out, nodes = self.ids[start:stop], [], 1
        node, changed = np.zeros(len(ids), np.int64), np.arange(len(ids)) == 0
        for k in range(self.depth):
            changed[1:] |= ids[1:, k] != ids[:-1, k]
            first = np.flatnonzero(changed)
            bounds, entries = chosen(self.rows[k].bounds, ids[first, k])
            cells = np.repeat(node[first], np.diff(bounds)) * self.shape[k] + self.rows[k].value[entries]
            shape = (len(first), nodes * self.shape[k])
            out.append(csr_array((self.rows[k].weight[entries], cells, bounds), shape=shape))
            node, nodes = np.cumsum(changed) - 1, len(first)
        owner, cells, weight = np.arange(len(ids)), node, np.ones(len(ids))
        for k in range(self.depth, len(self.shape)):
            bounds, entries = chosen(self.rows[k].bounds, ids[owner, k])
            again = np.repeat(np.arange(len(owner)), np.diff(bounds))
            cells = cells[again] * self.shape[k] + self.rows[k].value[entries]
            weight, owner = weight[again] * self.rows[k].weight[entries], owner[again]
        bounds = np.searchsorted(owner, np.arange(len(ids) + 1))
        shape = (len(ids), nodes * prod(self.shape[self.depth :]))
        out.append(csr_array((weight, cells, bounds), shape=shape))
        if self.entries <= KEPT_ENTRIES:
            self._kept[start, stop] = out
        return out


def sum_products(through: Sequence[csr_array], x: Floats) -> Floats:
    """Return a (tuples, lanes) array: the weighted sums of a table (cells, lanes) over the product sets of a block."""
    for matrix in through:
        x = matrix @ x.reshape(matrix.shape[1], -1)
    return np.asarray(x)


def sum_cells(through: Sequence[csr_array], amounts: Floats) -> Floats:
    """Return a (cells, lanes) array: the contributions of the tuples of a block to the cells of their product sets."""
    table = amounts
    for matrix in reversed(through):
        table = matrix.T @ table.reshape(matrix.shape[0], -1)
    return np.asarray(table.reshape(-1, amounts.shape[1]))


class Weighed(NamedTuple):
    """The tuple and the weight of every record."""

    place: NDArray[np.int64]
    each: Floats


def identity(values: int) -> Likelihood:
    """Return the rows of an exactly published column with so many values."""
    each = np.arange(values + 1)
    return Likelihood(each, each[:-1], np.ones(values))


class Tuples:
    """n records as distinct tuples (slot, code, code, ...) with their counts.

    The slot is what is published exactly; `rows` say what every code of the other entries leaves possible. Tables go in
    and come out with one dimension per entry of the tuple; inside, the entries with fewest codes stand first, because
    tuples that begin alike share work.
    """

    def __init__(
        self,
        rows: Sequence[Likelihood],
        shape: Sequence[int],
        order: Sequence[int],
        ids: NDArray[np.int32],
        counts: Floats,
        weighed: Weighed | None = None,
    ) -> None:
        self.rows, self.shape, self.order = tuple(rows), tuple(shape), tuple(order)
        self.ids, self.counts, self.weighed = ids, counts, weighed
        self._stars = [rows[i].floor > 0 for i in order]

    @classmethod
    def build(
        cls, rows: Sequence[Likelihood], shape: Sequence[int], columns: Sequence[NDArray], each: Floats | None = None
    ) -> Tuples:
        """Sort and count records given as columns of codes; `each` is the weight of every record."""
        order, ids, place = _sorted(rows, columns)
        counts = np.bincount(place, each, minlength=len(ids)).astype(np.float64)
        return cls(rows, shape, order, ids, counts, None if each is None else Weighed(place, each))

    @classmethod
    def single(cls, rows: Likelihood, d: int, counts: Floats) -> Tuples:
        """Return one column: its codes and their counts."""
        ids = np.column_stack([np.zeros(len(counts), np.int32), np.arange(len(counts), dtype=np.int32)])
        return cls((identity(1), rows), (1, d), (0, 1), ids, counts)

    def squared(self) -> Tuples:
        """Return the same tuples, counted by the squared weights of their records."""
        if self.weighed is None:
            return self
        counts = np.bincount(self.weighed.place, self.weighed.each**2, len(self)).astype(np.float64)
        return Tuples(self.rows, self.shape, self.order, self.ids, counts)

    def some(self, chosen: NDArray[np.int64]) -> Tuples:
        """Return some of the tuples, in ascending order."""
        return Tuples(self.rows, self.shape, self.order, self.ids[chosen], self.counts[chosen])

    def codes(self, entry: int) -> NDArray[np.int64]:
        """Return every tuple's slot (0) or its code of a hidden column."""
        return self.ids[:, self.order.index(entry)].astype(np.int64)

    def part(self, kept: Sequence[int]) -> tuple[Tuples, NDArray[np.int64]]:
        """Drop entries of the tuples (0 is the slot); return the rest and every tuple's position in it."""
        slots = identity(self.shape[0] if 0 in kept else 1)
        rows = [slots, *(self.rows[j] for j in kept if j > 0)]
        shape = [len(slots), *(self.shape[j] for j in kept if j > 0)]
        columns = [self.codes(j) for j in kept]
        if 0 not in kept:
            columns.insert(0, np.zeros(len(self), np.int64))
        order, ids, place = _sorted(rows, columns)
        counts = np.bincount(place, self.counts, len(ids)).astype(np.float64)
        return Tuples(rows, shape, order, ids, counts), place

    def __len__(self) -> int:
        return len(self.counts)

    @cached_property
    def products(self) -> Products:
        """Return the possible combinations of the tuples, with a marginal `*` for every value that a code does not
        list."""
        rows = [_starred(self.rows[i], self.shape[i]) for i in self.order]
        shape = [self.shape[i] + star for i, star in zip(self.order, self._stars, strict=True)]
        return Products(self.ids, rows, shape)

    @cached_property
    def _pairs(self) -> Products:
        """Count the pairs of cells inside each product set; the slot needs none, because every record has one."""
        parts = zip(self.order, self.products.rows, self.products.shape, strict=True)
        rows = [listed if i == 0 else _paired(listed, side) for i, listed, side in parts]
        parts = zip(self.order, self.products.rows, self.products.shape, strict=True)
        return Products(self.ids, rows, [side if i == 0 else side * side for i, _, side in parts])

    def information_work(self) -> float:
        """Estimate the number of additions that `information` needs."""
        return self._pairs.work

    def count(self, rows: Sequence[Likelihood], shape: Sequence[int]) -> Floats:
        """Sum the counts over product sets for hidden columns with these rows and numbers of values."""
        every, sizes = (identity(self.shape[0]), *rows), (self.shape[0], *shape)
        products = Products(self.ids, [every[i] for i in self.order], [sizes[i] for i in self.order])
        return self._back(products.scatter(self.counts).reshape(products.shape))

    def em_pass(
        self, x: NDArray, held: NDArray | None = None, floor: Floats | None = None, scale: float = 1.0
    ) -> tuple[Floats, Floats, float]:
        """Return sum_i L_i(c) / (L_i . x) over the records not held out, every tuple's L . x, and the log likelihood of
        the held-out ones, sum of log(scale L_i . x + floor_i)."""
        products, flat = self.products, self._inner(x)
        left, sums, value = self.counts if held is None else self.counts - held, np.empty(len(self)), 0.0

        def work(rows: slice, through: Sequence[csr_array]) -> tuple[Floats, float]:
            own = sum_products(through, flat)
            sums[rows] = own[:, 0]
            share = np.where(own > 0, left[rows, None] / np.maximum(own, LEAST), 0.0)
            return sum_cells(through, np.maximum(share, 0.0)), 0.0

        table = products.add_blocks(work)[0]
        if held is not None:
            rows = np.flatnonzero(held)
            chance = scale * sums[rows] + (0.0 if floor is None else floor[rows])
            value = float((held[rows] * np.log(np.maximum(chance, LEAST))).sum())
        table = self._fold(table.reshape(products.shape), range(len(self.order)))
        return self._back(table), sums, value

    def fold_pass(
        self, x: NDArray, held: Held, floor: Floats | None = None, scale: Floats | None = None
    ) -> tuple[Floats, float]:
        """Run `em_pass` for four tables along the last dimension of x. The log likelihood is that of all held-out
        records together, and 0 if no floor is given."""
        products, lanes, flat = self.products, x.shape[-1], self._inner(x)

        def work(block: slice, through: Sequence[csr_array]) -> tuple[Floats, float]:
            own, out, score = sum_products(through, flat), held.counts[block], 0.0
            if floor is not None and scale is not None:
                rows, folds = np.nonzero(out)
                chance = scale[folds] * own[rows, folds] + floor[block][rows]
                score = float((out[rows, folds] * np.log(np.maximum(chance, LEAST))).sum())
            share = (self.counts[block, None] - out) / np.maximum(own, LEAST)
            return sum_cells(through, share), score

        table, value = products.add_blocks(work, lanes)
        table = self._fold(table.reshape(*products.shape, lanes), range(len(self.order)))
        return np.ascontiguousarray(np.transpose(table, (*np.argsort(self.order), len(self.order)))), value

    def _inner(self, x: NDArray) -> Floats:
        """Return a (cells, lanes) table in the order of the tuples, with the marginals `*`."""
        inner = np.transpose(x, (*self.order, *range(len(self.order), x.ndim)))
        for i, star in enumerate(self._stars):
            if star:
                inner = np.concatenate([inner, inner.sum(axis=i, keepdims=True)], axis=i)
        return np.ascontiguousarray(inner, np.float64).reshape(prod(inner.shape[: len(self.order)]), -1)

    def information(self, sums: Floats) -> Floats:
        """Return J = sum_i L_i L_i' / (L_i . x)^2, one block per slot: shape (slots, cells, cells) over the hidden
        cells."""
        table = self._pairs.scatter(self.counts / np.square(np.maximum(sums, 1e-150)))
        sides = [(s,) if i == 0 else (s, s) for s, i in zip(self.products.shape, self.order, strict=True)]
        blocks = table.reshape([s for side in sides for s in side])
        first = offsets_of([len(side) for side in sides])
        blocks = self._fold(blocks, [int(first[i]) for i in range(len(sides))])
        blocks = self._fold(blocks, [int(first[i + 1]) - 1 for i in range(len(sides))])
        rank = np.argsort(self.order)
        axes = [int(first[rank[0]]), *(int(first[i]) for i in rank[1:]), *(int(first[i]) + 1 for i in rank[1:])]
        cells = prod(self.shape[1:])
        return np.ascontiguousarray(blocks.transpose(axes)).reshape(self.shape[0], cells, cells)

    def _fold(self, table: NDArray, dimensions: Sequence[int]) -> NDArray:
        """Distribute the sum of the marginal `*` to every value of its axis."""
        for star, dim in zip(self._stars, dimensions, strict=True):
            if star:
                last = table.shape[dim] - 1
                table = np.take(table, range(last), axis=dim) + np.take(table, [last], axis=dim)
        return table

    def _back(self, table: NDArray) -> Floats:
        return np.ascontiguousarray(np.transpose(table, np.argsort(self.order)))


def _starred(rows: Likelihood, values: int) -> Likelihood:
    """Return rows with a floor as rows without: the excess of every entry, and the floor at one more value `*`."""
    if rows.floor == 0:
        return rows
    at = rows.bounds[1:]
    value, weight = np.insert(rows.value, at, values), np.insert(rows.weight - rows.floor, at, rows.floor)
    return Likelihood(rows.bounds + np.arange(len(rows.bounds)), value, weight)


def _paired(rows: Likelihood, side: int) -> Likelihood:
    """Return all pairs of entries of every row, as entries of a table side x side."""
    bounds, right = chosen(rows.bounds, rows.owner)
    left = np.repeat(np.arange(len(rows.value)), np.diff(bounds))
    value, weight = rows.value[left] * side + rows.value[right], rows.weight[left] * rows.weight[right]
    return Likelihood(bounds[rows.bounds], value, weight)


def _sorted(
    rows: Sequence[Likelihood], columns: Sequence[NDArray]
) -> tuple[list[int], NDArray[np.int32], NDArray[np.int64]]:
    """Sort the entries by number of codes, and the distinct tuples by them; return the position of each."""
    sizes = [max(1, len(one)) for one in rows]
    order = [int(i) for i in np.argsort(sizes, kind="stable")]
    place = row_numbers([columns[i] for i in order], [sizes[i] for i in order], len(columns[0]))
    first = first_of(place)
    ids = np.stack([columns[i][first].astype(np.int32) for i in order], axis=1)
    return order, ids, place


# ---------------------------------------------------------------------- EM to the maximum


Progress = Callable[[int, float], None]
LONGEST = 1e4
LOWEST = -575.0
"""Logarithm of the smallest cell a long step may leave, beside the largest: a denormal one would overflow the next."""
MAX_STEPS = 2000


@dataclass(frozen=True)
class Fit:
    """An estimated table, the number of iterations, and the stopping rule."""

    table: Floats
    iterations: int
    diagnostics: dict[str, Any] = field(default_factory=dict)
    maximum: Floats | None = None
    """Where the likelihood is largest, if the table was drawn away from there on purpose."""


class Ascent:
    """A walk of EM from x with long steps: `take` what a step makes of x until it has ended.

    It ends when a step changes no cell by more than `tolerance`, or after `max_steps`. An extrapolation that lowers
    the likelihood is taken back.
    """

    def __init__(self, x: Floats, tolerance: float, max_steps: int, progress: Progress | None = None) -> None:
        self.x, self.tolerance, self.max_steps, self.progress = x, tolerance, max_steps, progress
        self.total = x.sum()
        self.best, self.fallback, self.change, self.steps = -np.inf, x, np.inf, 0
        self.path: list[Floats] = []
        self.has_ended = max_steps < 1

    def take(self, following: Floats, value: float) -> None:
        """Take an EM step: the table that follows x, and the log likelihood of x."""
        self.steps += 1
        self.has_ended = self.steps >= self.max_steps
        if value < self.best - 1e-9 * abs(self.best):
            self.x, self.path, self.best = self.fallback, [], -np.inf
            return
        self.best, self.change = value, float(np.abs(following - self.x).max())
        self.path.append(np.log(np.maximum(self.x, 1e-300)))
        self.x = following
        if self.progress is not None:
            self.progress(self.steps, self.change)
        if self.change <= self.tolerance:
            self.has_ended = True
        elif len(self.path) == 3:
            self._extrapolate()

    def _extrapolate(self) -> None:
        first, second = self.path[1] - self.path[0], self.path[2] - self.path[1]
        weight = np.sqrt(self.x)  # cells on their way to zero move fastest on this scale and matter least
        bend = float(np.linalg.norm(weight * (second - first)))
        length = min(LONGEST, float(np.linalg.norm(weight * first)) / max(bend, 1e-300))
        self.fallback = self.x
        if length > 1:
            x = self.path[0] + 2 * length * first + length**2 * (second - first)
            x = np.exp(np.maximum(x - x.max(), LOWEST))
            self.x = x * (self.total / x.sum())
        self.path = []


def converge(
    records: Tuples, x: Floats, tolerance: float, max_steps: int = MAX_STEPS, progress: Progress | None = None
) -> Fit:
    """Iterate EM from x until a step changes no cell by more than `tolerance` records."""
    walk = Ascent(x, tolerance, max_steps, progress)
    while not walk.has_ended:
        acc, sums, _ = records.em_pass(walk.x)
        walk.take(walk.x * acc, float((records.counts * np.log(np.maximum(sums, LEAST))).sum()))
    facts = {"stopping": "converged", "last_change": walk.change, "converged": walk.change <= tolerance}
    return Fit(walk.x, walk.steps, facts)
