"""The distinct tuples of published sets, sorted and counted, and the sums over them that every estimator needs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from math import exp, prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from noren.ragged import offsets_of, runs
from noren.statements.batch import number

if TYPE_CHECKING:
    from noren.estimates.counts.held_out import Held
    from noren.estimates.counts.kernels.em import Products
    from noren.statements import Design

CHUNKS = 4  # a fixed number, so that sums do not depend on the machine
PRIVATE_CELLS = 50_000_000  # for all chunks together
SERIAL_WORK = 500_000  # below, threads cost more than they save


@dataclass(frozen=True)
class Layout:
    """How a kernel walks the records: code tables, weights, sizes (axes in sorted order) and how many are shared."""

    products: Products
    shape: tuple[int, ...]

    @classmethod
    def of(
        cls, sets: Sequence[NDArray], coefs: Sequence[NDArray], shape: Sequence[int], nodes: Sequence[int]
    ) -> Layout:
        """Lay out code tables and weights (one row for each set or one for all), and share as many axes as pays."""
        from noren.estimates.counts.kernels.em import Products

        widths = [c.shape[-1] for c in coefs]
        sizes = np.array([prod(shape[i:]) for i in range(len(shape) + 1)], np.int64)
        code_start = offsets_of([s.size for s in sets])[:-1]
        coef_start = offsets_of([c.size for c in coefs])[:-1]
        coef_step = [width if c.ndim == 2 else 0 for width, c in zip(widths, coefs, strict=True)]
        costs = [_cost(depth, widths, shape, nodes) for depth in range(len(shape))]
        products = Products(
            codes=np.concatenate([s.ravel() for s in sets]).astype(np.int32),
            code_start=code_start,
            widths=np.array(widths, np.int64),
            coefs=np.concatenate([c.ravel() for c in coefs]).astype(np.float64),
            coef_rows=np.column_stack([coef_start, coef_step]).astype(np.int64),
            sizes=sizes,
            depth=int(np.argmin(costs)),
        )
        return cls(products, tuple(shape))


def _cost(depth: int, widths: Sequence[int], shape: Sequence[int], nodes: Sequence[float]) -> float:
    """Rough work of one pass if the first `depth` axes are shared; nodes[i] = distinct beginnings of i+1 sets."""
    shared = sum(nodes[i] * (widths[i] + 1) * (3 + prod(shape[i + 1 :]) / 4) for i in range(depth))
    leaf = prod(int(w) for w in widths[depth:])
    return shared + nodes[-1] * (leaf if depth == len(shape) - 1 else 1.6 * leaf + 10)


class Weighed(NamedTuple):
    """The tuple of every record, and what the record weighs."""

    place: NDArray[np.int64]
    each: NDArray[np.float64]


class Tuples:
    """n records as distinct tuples (slot, set, set, ...) with their counts.

    Tables go in and come out with one dimension per entry of the tuple; inside, the axes stand in the order that shares
    most work. `weights` gives, where a column's sets do not weigh their members alike, P(R | v) for each distinct set R
    and member v, up to a factor for each R.
    """

    def __init__(
        self,
        slots: int,
        designs: Sequence[Design],
        sets: Sequence[NDArray[np.int32]],
        order: Sequence[int],
        ids: NDArray[np.int32],
        counts: NDArray[np.float64],
        weights: Sequence[NDArray[np.float64] | None] | None = None,
        weighed: Weighed | None = None,
    ) -> None:
        self.weighed = weighed
        self.order, self.ids, self.counts = tuple(order), ids, counts
        self.designs, self.sets, self.weights = tuple(designs), tuple(sets), weights
        self.shape = (slots, *(design.d for design in designs))
        every = (np.arange(slots, dtype=np.int32)[:, None], *sets)
        stars = (0.0, *(design.star(s) for design, s in zip(designs, sets, strict=True)))
        given = (None, *(weights if weights is not None else [None] * len(designs)))
        self._sets = [every[i] for i in self.order]
        self._weights = [np.ones(every[i].shape[1]) if (w := given[i]) is None else w for i in self.order]
        self._d = [self.shape[i] for i in self.order]
        self._stars = [bool(np.any(np.asarray(stars[i]) > 0)) for i in self.order]
        self._outside = [stars[i] for i in self.order]
        self._exact = [i == 0 for i in self.order]
        self.nodes: list[int] = []
        changed = np.zeros(len(counts), np.bool_)
        changed[:1] = True
        for i in range(len(self.order)):
            changed[1:] |= ids[1:, i] != ids[:-1, i]
            self.nodes.append(int(changed.sum()))

    @classmethod
    def build(
        cls,
        slots: int,
        designs: Sequence[Design],
        sets: Sequence[NDArray[np.int32]],
        columns: Sequence[NDArray[np.int32]],
        weights: Sequence[NDArray[np.float64] | None] | None = None,
        each: NDArray[np.float64] | None = None,
    ) -> Tuples:
        """Sort and count records given as columns of slot and set numbers; `each` is what every record weighs."""
        order, ids, place = _sorted(slots, designs, sets, columns)
        counts = np.bincount(place, each, minlength=len(ids)).astype(np.float64)
        weighed = None if each is None else Weighed(place, each)
        return cls(slots, designs, sets, order, ids, counts, weights, weighed)

    def squared(self) -> Tuples:
        """The same tuples, counted by the squares of what their records weigh."""
        if self.weighed is None:
            return self
        counts = np.bincount(self.weighed.place, self.weighed.each**2, len(self)).astype(np.float64)
        return Tuples(self.shape[0], self.designs, self.sets, self.order, self.ids, counts, self.weights)

    @classmethod
    def single(
        cls,
        design: Design,
        sets: NDArray[np.int32],
        counts: NDArray[np.float64],
        weights: NDArray[np.float64] | None = None,
    ) -> Tuples:
        """One attribute on its own: its distinct sets and how often each occurs."""
        ids = np.column_stack([np.zeros(len(sets), np.int32), np.arange(len(sets), dtype=np.int32)])
        return cls(1, (design,), (sets,), (0, 1), ids, counts, (weights,))

    def rows(self, chosen: NDArray[np.int64]) -> Tuples:
        """Some of the tuples, in ascending order."""
        ids, counts = self.ids[chosen], self.counts[chosen]
        return Tuples(self.shape[0], self.designs, self.sets, self.order, ids, counts, self.weights)

    def entries(self, axis: int) -> tuple[NDArray[np.int64], int]:
        """Every tuple's slot (axis 0) or its set of a decoy column, and how many of these there are."""
        number = self.shape[0] if axis == 0 else len(self.sets[axis - 1])
        return self.ids[:, self.order.index(axis)].astype(np.int64), number

    def part(self, kept: Sequence[int]) -> tuple[Tuples, NDArray[np.int64]]:
        """The tuples without the entries that are not kept (0 is the slot), and for every tuple the place of its rest
        among them."""
        slots = self.shape[0] if 0 in kept else 1
        chosen = [j for j in kept if j > 0]
        sets = [self.sets[j - 1] for j in chosen]
        weights = None if self.weights is None else [self.weights[j - 1] for j in chosen]
        columns = [self.ids[:, self.order.index(j)] for j in kept]
        if 0 not in kept:
            columns.insert(0, np.zeros(len(self), np.int32))
        designs = [self.designs[j - 1] for j in chosen]
        order, ids, place = _sorted(slots, designs, sets, columns)
        counts = np.bincount(place, self.counts, len(ids)).astype(np.float64)
        return Tuples(slots, designs, sets, order, ids, counts, weights), place

    def __len__(self) -> int:
        return len(self.counts)

    @cached_property
    def _plain(self) -> Layout:
        return Layout.of(self._sets, [np.ones(s.shape[1]) for s in self._sets], self._d, self.nodes)

    @cached_property
    def _starred(self) -> Layout:
        """Sets plus, where p < 1, the marginal `*` that stands for every value outside."""
        sets, coefs, shape = [], [], []
        parts = zip(self._sets, self._d, self._stars, self._outside, self._weights, strict=True)
        for s, d, star, outside, coef in parts:
            sets.append(np.column_stack([s, np.full(len(s), d, np.int32)]) if star else s)
            coefs.append(_with_star(coef, outside, len(s)) if star else coef)
            shape.append(d + 1 if star else d)
        return Layout.of(sets, coefs, shape, self.nodes)

    @cached_property
    def _pairs(self) -> Layout:
        """Pairs of cells inside each set; the slot needs none, since no record spans two of them."""
        starred, sets, coefs, shape = self._starred, [], [], []
        codes, code_start, widths, coef, coef_rows, *_ = starred.products
        for i, exact in enumerate(self._exact):
            width, side = int(widths[i]), starred.shape[i]
            rows = codes[code_start[i] :][: len(self._sets[i]) * width].reshape(-1, width)
            start, step = (int(k) for k in coef_rows[i])
            c = coef[start:][: step * len(rows) or width].reshape(-1, width)
            pairs = c if exact else (c[:, :, None] * c[:, None, :]).reshape(len(c), -1)
            sets.append(rows if exact else (rows[:, :, None] * side + rows[:, None, :]).reshape(len(rows), -1))
            coefs.append(pairs if step else pairs[0])
            shape.append(side if exact else side * side)
        return Layout.of(sets, coefs, shape, self.nodes)

    def _work(self, layout: Layout) -> float:
        return _cost(layout.products.depth, layout.products.widths.tolist(), layout.shape, self.nodes)

    def information_work(self) -> float:
        """Rough number of additions that `information` would take."""
        return self._work(self._pairs)

    def _run(self, layout: Layout, work: Callable[[int, int, NDArray], float], lanes: int = 1) -> tuple[NDArray, float]:
        """Split the records into a few chunks, each adding to its own table, and add those up."""
        size, total = prod(layout.shape) * lanes, len(self)
        chunks = CHUNKS if self._work(layout) * lanes > SERIAL_WORK and size * CHUNKS < PRIVATE_CELLS else 1
        edges = np.linspace(0, total, chunks + 1).astype(int)
        tables = [np.zeros(size) for _ in range(chunks)]
        jobs = [(int(edges[i]), int(edges[i + 1]), tables[i]) for i in range(chunks)]
        if chunks == 1:
            return tables[0], work(*jobs[0])
        with ThreadPoolExecutor(min(chunks, os.cpu_count() or 1)) as pool:
            values = list(pool.map(lambda job: work(*job), jobs))
        return sum(tables[1:], start=tables[0]), sum(values)

    def inclusions(self) -> NDArray[np.float64]:
        """w_c: how many records' product sets contain cell c (equation 17)."""
        return self._inclusions

    @cached_property
    def _inclusions(self) -> NDArray[np.float64]:
        return self._count(self._plain)

    def count(self, sets: Sequence[NDArray], coefs: Sequence[NDArray], shape: Sequence[int]) -> NDArray[np.float64]:
        """Inclusion counts if the columns' sets were these: for each, one row of codes and weights per distinct set."""
        slots = np.arange(self.shape[0], dtype=np.int32)[:, None]
        every, weights, sizes = (slots, *sets), (np.ones(1), *coefs), (self.shape[0], *shape)
        codes, coef = [every[i] for i in self.order], [weights[i] for i in self.order]
        return self._count(Layout.of(codes, coef, [sizes[i] for i in self.order], self.nodes))

    def _count(self, layout: Layout) -> NDArray[np.float64]:
        from noren.estimates.counts.kernels import em

        kernel = _untyped(em.add_products)

        def work(start: int, stop: int, table: NDArray) -> float:
            kernel(self.ids, start, stop, layout.products, self.counts, table)
            return 0.0

        table, _ = self._run(layout, work)
        return self._back(table.reshape(layout.shape))

    def em_pass(
        self,
        x: NDArray,
        held: NDArray[np.int32] | None = None,
        floor: NDArray[np.float64] | None = None,
        scale: float = 1.0,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """sum_i L_i(c) / (L_i . x) over the records not held out; every tuple's L . x; and the log likelihood of
        the held ones, sum of log(scale L_i . x + floor_i)."""
        from noren.estimates.counts.kernels import em

        held = np.zeros(len(self), np.int32) if held is None else held
        floor = np.zeros(len(self)) if floor is None else floor

        layout, kernel, sums = self._starred, _untyped(em.em_pass), np.empty(len(self))
        inner = np.transpose(x, self.order)
        for i, star in enumerate(self._stars):
            if star:
                inner = np.concatenate([inner, inner.sum(axis=i, keepdims=True)], axis=i)
        flat, seen = np.ascontiguousarray(inner).ravel(), em.Seen(self.counts, held, floor)

        def work(start: int, stop: int, table: NDArray) -> float:
            return float(kernel(self.ids, start, stop, layout.products, seen, scale, flat, table, sums))

        table, value = self._run(layout, work)
        return self._back(self._fold(table.reshape(layout.shape), range(len(self.order)))), sums, value

    def fold_pass(
        self,
        x: NDArray,
        held: Held,
        floor: NDArray[np.float64] | None = None,
        scale: NDArray[np.float64] | None = None,
    ) -> tuple[NDArray[np.float64], float]:
        """`em_pass` of four tables at once, which stand along the last dimension of x. The log likelihood is that of
        all held records together, and 0 if no floor is given."""
        from noren.estimates.counts.kernels import em_folds

        layout, kernel, lanes = self._starred, _untyped(em_folds.fold_pass), x.shape[-1]
        inner = np.transpose(x, (*self.order, len(self.order)))
        for i, star in enumerate(self._stars):
            if star:
                inner = np.concatenate([inner, inner.sum(axis=i, keepdims=True)], axis=i)
        flat = np.ascontiguousarray(inner).ravel()
        asked = floor is not None
        floor = np.ones(len(self)) if floor is None else floor
        scale = np.zeros(lanes) if scale is None else scale

        def work(start: int, stop: int, table: NDArray) -> float:
            seen = (self.ids, start, stop, layout.products, self.counts, held.counts, held.only, floor, scale, asked)
            return float(kernel(*seen, flat, table))

        table, value = self._run(layout, work, lanes)
        table = self._fold(table.reshape(*layout.shape, lanes), range(len(self.order)))
        return np.ascontiguousarray(np.transpose(table, (*np.argsort(self.order), len(self.order)))), value

    def information(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """J = sum_i L_i L_i' / (L_i . x)^2, one block per slot: shape (slots, cells, cells) over the decoys' cells."""
        from noren.estimates.counts.kernels import em

        layout, kernel = self._pairs, _untyped(em.add_products)
        amounts = self.counts / np.square(np.maximum(sums, 1e-150))

        def work(start: int, stop: int, table: NDArray) -> float:
            kernel(self.ids, start, stop, layout.products, amounts, table)
            return 0.0

        table, _ = self._run(layout, work)
        sides = [(s,) if exact else (s, s) for s, exact in zip(self._starred.shape, self._exact, strict=True)]
        blocks = table.reshape([s for side in sides for s in side])
        first = offsets_of([len(side) for side in sides])
        blocks = self._fold(blocks, [int(first[i]) for i in range(len(sides))])
        blocks = self._fold(blocks, [int(first[i + 1]) - 1 for i in range(len(sides))])
        rank = np.argsort(self.order)
        axes = [int(first[rank[0]]), *(int(first[i]) for i in rank[1:]), *(int(first[i]) + 1 for i in rank[1:])]
        cells = prod(self.shape[1:])
        return np.ascontiguousarray(blocks.transpose(axes)).reshape(self.shape[0], cells, cells)

    def _fold(self, table: NDArray, dimensions: Sequence[int]) -> NDArray:
        """Give what the marginal `*` gathered to every value of its axis."""
        for star, dim in zip(self._stars, dimensions, strict=True):
            if star:
                last = table.shape[dim] - 1
                table = np.take(table, range(last), axis=dim) + np.take(table, [last], axis=dim)
        return table

    def _back(self, table: NDArray) -> NDArray[np.float64]:
        return np.ascontiguousarray(np.transpose(table, np.argsort(self.order)))


def _with_star(coef: NDArray, outside: float | NDArray, sets: int) -> NDArray[np.float64]:
    """The members' weights and, behind them, that of the marginal `*`: one row for all sets, or one for each."""
    if np.ndim(outside) == 0 and coef.ndim == 1:
        return np.append(coef, outside)
    return np.column_stack([np.broadcast_to(coef, (sets, coef.shape[-1])), np.broadcast_to(outside, sets)])


def _sorted(
    slots: int, designs: Sequence[Design], sets: Sequence[NDArray[np.int32]], columns: Sequence[NDArray]
) -> tuple[tuple[int, ...], NDArray[np.int32], NDArray[np.int64]]:
    """The order of entries that shares most work, the distinct tuples sorted by it, and the place of each among
    them."""
    distinct = [max(1, slots), *(max(1, len(s)) for s in sets)]
    widths = [1, *(d.eta + int(np.any(np.asarray(d.star(s)) > 0)) for d, s in zip(designs, sets, strict=True))]
    order = _best_order(distinct, widths, (slots, *(design.d for design in designs)), len(columns[0]))
    if prod(distinct) < 1 << 62:
        key = np.zeros(len(columns[0]), np.int64)
        for i in order:
            key = key * distinct[i] + columns[i]
        keys, place = number(key)
        ids = np.empty((len(keys), len(order)), np.int32)
        for position in range(len(order) - 1, -1, -1):
            keys, ids[:, position] = np.divmod(keys, distinct[order[position]])
        return order, ids, place
    stacked = np.stack([columns[i] for i in order], axis=1)
    by = np.lexsort(stacked.T[::-1])
    stacked = stacked[by]
    same = runs(stacked)
    place = np.empty(len(stacked), np.int64)
    place[by] = np.repeat(np.arange(len(same) - 1), np.diff(same))
    return order, np.ascontiguousarray(stacked[same[:-1]]), place


def _best_order(distinct: Sequence[int], widths: Sequence[int], shape: Sequence[int], records: int) -> tuple[int, ...]:
    """The order of axes whose common beginnings save most work, by expected numbers of distinct beginnings."""

    def cost(order: tuple[int, ...]) -> float:
        nodes, boxes = [], 1.0
        for i in order:
            boxes *= max(1, distinct[i])
            nodes.append(boxes * -(exp(-records / boxes) - 1) if records < 30 * boxes else boxes)
        nodes[-1] = min(nodes[-1], float(records))
        w, s = [widths[i] for i in order], [shape[i] for i in order]
        return min(_cost(depth, w, s, nodes) for depth in range(len(order)))

    if len(shape) > 6:
        return tuple(int(i) for i in np.argsort(distinct, kind="stable"))
    return min(permutations(range(len(shape))), key=cost)


def _untyped(kernel: Any) -> Callable[..., Any]:
    """Numba's dispatchers declare a signature without arguments; this one has them."""
    found: Callable[..., Any] = kernel
    return found
