"""Corrected score equations: sum over records and values of weight times (y - mean) x = 0, solved by damped Newton.

The weights are unbiased scores of the hidden cells, so the equations have the expectation of those of the true table
and the estimate is consistent; its errors follow from the records' own sums (the sandwich). Weights may be negative,
so a solution need not exist in a small release: what the equations rest on is measured, and too little is refused.

The cells of a model: exact values that occur, times all values that hidden columns may have.

A record weighs in every cell of its exact slot with the product of its columns' scores (or likelihoods). Sums over
records are therefore sums over cells, and only the errors need the records, in chunks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError
from noren.estimates.counts.rows import distinct_rows, row_numbers
from noren.estimates.statistics.formula import Family
from noren.estimates.statistics.records import Product, Records, Variable

CELLS = 3_000_000
CHUNK = 4_000_000
"""Numbers that are worked on at once."""


@dataclass(frozen=True, eq=False)
class ModelGrid:
    """A grid of E exact slots times H combinations of hidden values, with the label of every variable in every cell."""

    records: Records
    hidden: Sequence[int]
    """Hidden axes that take part, each with its atoms."""
    members: Sequence[NDArray[np.float64]]
    """(d, atoms) of every hidden axis: which base values an atom holds; 0 where a condition rules one out."""
    slot: NDArray[np.int64]
    """The exact slot of every different tuple."""
    ids: NDArray[np.int64]
    """(tuples, hidden): the cell of every hidden axis."""
    counts: NDArray[np.float64]
    squares: NDArray[np.float64]
    """Sums of squared weights; the counts where records are not weighed."""
    labels: Mapping[str, NDArray[np.int64]]
    """(E, 1) or (1, H): the label of every variable."""
    shape: tuple[int, int]
    exact: Sequence[int]
    """Exact axes that take part."""
    atoms: Sequence[NDArray[np.int64]]
    """The atom of every base value of a hidden axis."""
    own: Sequence[Variable]
    """The variables along exact axes, whose labels make the slots."""
    slots: NDArray[np.int64]
    """(E, own): the labels of every slot."""

    @classmethod
    def of(cls, records: Records, base: Product, variables: Sequence[Variable]) -> ModelGrid:
        places = dict.fromkeys([*(variable.axis for variable in variables), *base])
        exact = [place for place in places if records.scores[place].axis.is_exact]
        hidden = [place for place in places if place not in exact]
        atoms, members = [], []
        for place in hidden:
            own = [variable.groups for variable in variables if variable.axis == place]
            numbers = row_numbers(own, records.scores[place].axis.d)
            size = int(numbers.max(initial=0)) + 1
            atoms.append(numbers)
            members.append((numbers[:, None] == np.arange(size)) * base.get(place, np.ones(len(numbers)))[:, None])
        values = [_values(records, place) for place in exact]
        own_labels = [v.groups[values[exact.index(v.axis)]] for v in variables if v.axis in exact]
        slot = row_numbers(own_labels, len(records.counts))
        slots = int(slot.max(initial=0)) + 1
        first = np.zeros(slots, np.int64)
        first[slot] = np.arange(len(slot))
        sizes = tuple(member.shape[1] for member in members)
        width = int(np.prod(sizes))
        if slots * width > CELLS:
            raise QueryError(
                f"the model has {slots:,} x {width:,} combinations of exact and hidden values, more than {CELLS:,}.",
                hint="Use fewer columns, hierarchy levels (`zip@1`) or intervals (`age/10`).",
            )
        labels: dict[str, NDArray[np.int64]] = {}
        for variable in variables:
            if variable.axis in exact:
                labels[variable.name] = variable.groups[values[exact.index(variable.axis)]][first][:, None]
                continue
            place = hidden.index(variable.axis)
            of_atom = np.zeros(sizes[place], np.int64)
            of_atom[atoms[place]] = variable.groups
            labels[variable.name] = of_atom[np.indices(sizes)[place].ravel()][None, :]
        together = [slot, *(records.ids[:, place] for place in hidden)]
        rows, _ = distinct_rows(together, len(slot))
        number = row_numbers(together, len(slot))
        counts, squares = (
            np.bincount(number, each, len(rows)).astype(np.float64) for each in (records.counts, records.squares)
        )
        along = [variable for variable in variables if variable.axis in exact]
        kinds = np.stack([each[first] for each in own_labels], axis=1) if along else np.zeros((slots, 0), np.int64)
        shape, parts = (slots, width), (rows[:, 0], rows[:, 1:], counts, squares, labels)
        return cls(records, hidden, members, *parts, shape, exact, atoms, along, kinds)

    def located(self, codes: Mapping[int, NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the slot and the combination of hidden atoms of base values; -1 if there is none."""
        n = len(next(iter(codes.values())))
        sizes = tuple(member.shape[1] for member in self.members)
        atoms = tuple(self.atoms[k][codes[place]] for k, place in enumerate(self.hidden))
        column = np.ravel_multi_index(atoms, sizes) if sizes else np.zeros(n, np.int64)
        if not self.own:
            return np.zeros(n, np.int64), column
        asked = np.stack([variable.groups[codes[variable.axis]] for variable in self.own], axis=1)
        both = row_numbers(list(np.concatenate([self.slots, asked]).T), len(self.slots) + n)
        place = np.full(int(both.max()) + 1, -1, np.int64)
        place[both[: len(self.slots)]] = np.arange(len(self.slots))
        return place[both[len(self.slots) :]], column

    @cached_property
    def scores(self) -> list[NDArray[np.float64]]:
        """Return the (cells, atoms) scores of every hidden axis."""
        found = zip(self.hidden, self.members, strict=True)
        return [self.records.scores[place].of(member) for place, member in found]

    def weights(self, tables: Sequence[NDArray[np.float64]], rows: slice) -> NDArray[np.float64]:
        """Return a (rows, H) array: the product of the columns' numbers for every combination."""
        own = [table[self.ids[rows, place]] for place, table in enumerate(tables)]
        n = len(self.counts[rows])
        return reduce(lambda a, b: (a[:, :, None] * b[:, None, :]).reshape(n, -1), own, np.ones((n, 1)))

    def chunks(self, width: int = 1) -> Iterator[slice]:
        step = max(1, CHUNK // max(1, self.shape[1] * width))
        for start in range(0, len(self.counts), step):
            yield slice(start, min(start + step, len(self.counts)))

    @cached_property
    def table(self) -> NDArray[np.float64]:
        """Return an (E, H) array: the estimated number of records of every cell, unbiased and perhaps negative."""
        return self._summed(1)

    @cached_property
    def squares_table(self) -> NDArray[np.float64]:
        """Return an (E, H) array: the sums of the records' squared scores, which give the variance of the table."""
        return self._summed(2)

    def _summed(self, power: int) -> NDArray[np.float64]:
        from scipy.sparse import csr_array

        out = np.zeros(self.shape)
        for rows in self.chunks():
            weights, n = self.weights(self.scores, rows), len(self.counts[rows])
            put = csr_array((self.counts[rows], (self.slot[rows], np.arange(n))), (self.shape[0], n))
            out += put @ weights**power
        return out


def _values(records: Records, place: int) -> NDArray[np.int64]:
    """Return the base value of every distinct tuple on an exact axis."""
    scores = records.scores[place]
    codes = np.arange(scores.axis.d, dtype=np.float64)[:, None]
    return scores.of(codes)[:, 0].astype(np.int64)[records.ids[:, place]]


STEPS = 60
TOLERANCE = 1e-8
FARTHEST = 25.0
"""A linear predictor beyond this on average is on its way to infinity."""
SIGNAL = 4.0
"""The least information of a model, in standard errors of itself, on which normal intervals can rest."""


@dataclass(frozen=True, eq=False)
class Equations:
    """A model on a grid: columns x (E, H, p), responses y (E, H, q), and which cells take part."""

    grid: ModelGrid
    family: Family
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    counted: NDArray[np.bool_]
    offset: NDArray[np.float64]
    """(E, H, 1): what the linear predictor has besides."""

    shared: NDArray[np.float64] | None = None
    """(q p, free): how the coefficients follow from fewer free ones; None if all are free."""

    @property
    def free(self) -> NDArray[np.float64]:
        return np.eye(self.q * self.p) if self.shared is None else self.shared

    def predictor(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the (E, H, q) linear predictors at coefficients (q, p)."""
        return np.asarray(self.x @ theta.T + self.offset)

    @property
    def p(self) -> int:
        return int(self.x.shape[-1])

    @property
    def q(self) -> int:
        return int(self.y.shape[-1])


@dataclass(frozen=True, eq=False)
class Solution:
    """Coefficients (q, p), the matrix of the equations at them, and whether the iteration converged."""

    theta: NDArray[np.float64]
    bread: NDArray[np.float64]
    converged: bool
    steps: int
    table: NDArray[np.float64]
    """What the equations were solved on."""


def solve(
    equations: Equations,
    table: NDArray[np.float64],
    start: NDArray[np.float64] | None = None,
    *,
    steps: int = STEPS,
    ridge: NDArray[np.float64] | None = None,
) -> Solution:
    """Apply Newton's method to weighted cells, damped if the matrix is not positive or a step does not improve."""
    used = np.flatnonzero((table != 0).ravel() & equations.counted.ravel())
    x = equations.x.reshape(-1, equations.p)[used]
    y = equations.y.reshape(-1, equations.q)[used]
    t, q, p, offset = table.ravel()[used], equations.q, equations.p, equations.offset.reshape(-1, 1)[used]
    family = equations.family
    penalty = np.zeros(q * p) if ridge is None else ridge
    theta = np.zeros((q, p)) if start is None else start.copy()
    free = equations.free
    damping, done = 0.0, False

    def gain(at: NDArray[np.float64]) -> float:
        with np.errstate(over="ignore", invalid="ignore"):  # a step too far is no gain
            return float(t @ family.gain(y, x @ at.T + offset) - penalty @ at.ravel() ** 2 / 2)

    now, taken = gain(theta), 0
    bread = np.eye(q * p)
    for taken in range(1, steps + 1):  # noqa: B007  told at the end
        eta = x @ theta.T + offset
        slope = free.T @ ((family.residual(y, eta) * t[:, None]).T @ x - penalty.reshape(q, p) * theta).ravel()
        bread = free.T @ (information(x, t, family.curvature(y, eta)) + np.diag(penalty)) @ free
        scale = np.sqrt(np.abs(np.diag(bread)) + 1e-300)
        scaled = bread / np.outer(scale, scale)
        least = float(np.linalg.eigvalsh(scaled)[0])
        if least <= 1e-9:
            damping = max(damping, 1e-3 - least)
        move = np.linalg.solve(scaled + damping * np.eye(len(scaled)), slope / scale) / scale
        decrement, move = float(np.abs(slope @ move)), free @ move
        if least > 1e-9 and decrement < TOLERANCE * max(1.0, float(np.abs(t).sum()) ** 0.5):
            theta, done = theta + move.reshape(q, p), True
            break
        factor = 1.0
        while factor > 1e-4 and not gain(theta + factor * move.reshape(q, p)) > now:
            factor /= 2
        if factor <= 1e-4:
            damping = max(10 * damping, 1e-3)
            if damping > 1e6:
                break
            continue
        damping /= 4
        damping = damping if damping > 1e-6 else 0.0
        theta = theta + factor * move.reshape(q, p)
        now = gain(theta)
        with np.errstate(over="ignore"):  # too large for a number is farther than any bound
            reach = float(np.sqrt(np.mean((x @ theta.T) ** 2)))
        if reach > FARTHEST and family.name != "gaussian":
            break
    return Solution(theta, bread, done, taken, table)


def information(x: NDArray[np.float64], t: NDArray[np.float64], slope: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sum of t times (slope kron x x')."""
    q = slope.shape[1]
    blocks = [[x.T @ (x * (t * slope[:, a, b])[:, None]) for b in range(q)] for a in range(q)]
    return np.block(blocks)


@dataclass(frozen=True, eq=False)
class Sandwich:
    """Return the covariance of the coefficients, and the signal-to-noise ratio of the equations."""

    cov: NDArray[np.float64]
    signal: float
    """Information in the direction that has least, in standard errors of itself."""
    direction: NDArray[np.float64]
    clear: NDArray[np.float64]
    """The covariance if the same records were published in clear."""


class Blended(Protocol):
    """A protocol: a second source of the model's table."""

    @property
    def share(self) -> NDArray[np.float64]: ...

    def meat(
        self, own: NDArray[np.float64], left: NDArray[np.float64], x: NDArray[np.float64]
    ) -> NDArray[np.float64]: ...


def sandwich(equations: Equations, found: Solution, blend: Blended | None = None) -> Sandwich:
    """Return A^-1 B A^-1 with B from every record's own sum, and the noise of A in its weakest direction.

    Both are multiplied by how many records a person has at most: their sums need not be independent.
    """
    grid, family, q, p = equations.grid, equations.family, equations.q, equations.p
    slots, width = grid.shape
    eta, y, free = equations.predictor(found.theta).reshape(-1, q), equations.y.reshape(-1, q), equations.free
    counted = equations.counted[..., None]
    left = np.where(counted, family.residual(y, eta).reshape(slots, width, q), 0.0)
    scale = np.sqrt(np.abs(np.diag(found.bread)) + 1e-300)
    _, vectors = np.linalg.eigh(found.bread / np.outer(scale, scale))
    direction = vectors[:, 0] / scale
    along = (equations.x @ (free @ direction).reshape(q, p).T).reshape(-1, q)
    bend = np.einsum("ga,gab,gb->g", along, family.curvature(y, eta), along).reshape(slots, width)
    bend = np.where(equations.counted, bend, 0.0)
    own = (left[..., :, None] * np.broadcast_to(equations.x, (slots, width, p))[..., None, :]).reshape(-1, q * p)
    clear = (own * np.maximum(found.table, 0.0).reshape(-1, 1)).T @ own
    meat, noise, level, n = np.zeros((q * p, q * p)), 0.0, 0.0, grid.records.n
    for rows in grid.chunks(q * p):
        weights, slot = grid.weights(grid.scores, rows), grid.slot[rows]
        weights = weights if blend is None else weights * (1 - blend.share[slot])
        counts, squares = grid.counts[rows], grid.squares[rows]
        own = np.einsum("bh,bhq,bhp->bqp", weights, left[slot], equations.x[slot], optimize=True).reshape(-1, q * p)
        meat += (own * squares[:, None]).T @ own
        one = (weights * bend[slot]).sum(axis=1)
        level, noise = level + float(counts @ one), noise + float(squares @ one**2)
    back = free @ np.linalg.pinv(found.bread, hermitian=True) @ free.T
    if blend is not None:
        meat = meat + blend.meat(grid.table, left, np.broadcast_to(equations.x, (slots, width, p)))
        level, noise = float((found.table * bend).sum()), noise + float((blend.share * grid.table * bend**2).sum())
    several = grid.records.inflation
    error = np.sqrt(several * max(noise - level**2 / max(n, 1.0), 1e-300))
    larger = several * n / max(n - q * p, 1.0)
    return Sandwich(back @ meat @ back * larger, level / error, free @ direction, back @ clear @ back * larger)
