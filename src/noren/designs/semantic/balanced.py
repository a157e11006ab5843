"""The design with the smallest possible worst belief in a member under a uniform prior.

Where no flat design exists, some member of some set must be likelier than 1/l. Which design keeps the largest such
belief smallest is a linear programme for each bound tau: with Y(T, i) the mass that values of kind i put on sets of
type T,

    sum over T of Y(T, i) = number of values of kind i,    Y(T, i) <= tau * sum over j of Y(T, j)

and bisection finds the least tau. Values that are compatible with the same others are of one kind and may be exchanged,
so that the programme needs a variable for every type of set (one kind after the other), not for every set.
"""

# ruff: noqa: E741  l is the paper's letter

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from noren.designs.draw import unfair
from noren.designs.semantic.compatibility import Compatibility
from noren.designs.semantic.law import Law, RowKernel, list_sets

MOST_VARIABLES = 4_000
"""Types times l up to which the programme is solved; beyond, it would take minutes."""
MOST_KINDS = 1 << 11
EXACTNESS = 1e-6
"""To which the least belief is found, and by which a design may exceed what was asked of it."""
LEAST_MASS = 1e-5
"""A type with less of all its kinds' mass is left out: there a solver's rounding would decide who is believed."""
AVERAGED = 6
"""Solutions of the programme that are averaged, so that many sets are drawn and counts can be recovered."""


class Types(NamedTuple):
    """Kinds of values, types of sets as rows of ascending kinds, and the probability of each type for a value of a
    kind."""

    kind: NDArray[np.int64]
    rows: NDArray[np.int64]
    chances: NDArray[np.float64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.bincount(self.kind, minlength=int(self.kind.max()) + 1)

    def beliefs(self) -> NDArray[np.float64]:
        """Return P(member of the kind | a set of the type) under a uniform prior."""
        mass = self.chances * self.sizes[self.rows]
        return np.asarray(mass / np.maximum(mass.sum(axis=1, keepdims=True), 1e-300))


@dataclass(frozen=True)
class Solution:
    """A balanced design, the largest belief under it, and a lower bound for designs of this kind."""

    types: Types
    worst: float
    bound: float


def least_belief(compatibility: Compatibility, l: int) -> float:
    """Return a lower bound of the worst belief: 1/l, and the share of values of which a set can contain only one."""
    F, chain = compatibility.F, compatibility.chain
    widest = chain.widest() if chain is not None else int(np.bincount(kinds_of(compatibility)).max())
    return max(1 / l, widest / F)


def kinds_of(compatibility: Compatibility) -> NDArray[np.int64]:
    """Number the kinds of values: values with the same compatible values are of one kind."""
    _, first, number = np.unique(compatibility.pairs, axis=0, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[number.ravel()])


def balance(compatibility: Compatibility, l: int, most: float = 0.0) -> Solution | None:
    """Return the design of smallest worst belief, or one that permits `most` if that is larger; None if the programme
    is too large."""
    kind = kinds_of(compatibility)
    kinds, first = np.unique(kind, return_index=True)
    if len(kinds) > MOST_KINDS:
        return None
    pairs = compatibility.pairs[np.ix_(first, first)]
    rows = list_sets(Compatibility.from_distances(pairs.astype(float), 1.0), l, MOST_VARIABLES // l)
    if rows is None:
        return None
    rows, sizes = rows.astype(np.int64), np.bincount(kind)
    bound = least_belief(compatibility, l)
    low, high = bound, 1.0
    programme = _Programme(rows, sizes)
    if programme.solved(low) is not None:
        high = low
    while high - low > EXACTNESS / 4 * low:
        middle = (low + high) / 2
        if programme.solved(middle) is None:
            low = middle
        else:
            high = middle
    types = programme.spread(kind, max(high, most))
    return Solution(types, float(types.beliefs().max()), bound)


class _Programme:
    """The linear programme over some types of sets."""

    def __init__(self, rows: NDArray[np.int64], sizes: NDArray[np.int64]) -> None:
        from scipy.sparse import coo_matrix

        self.rows, self.sizes = rows, sizes
        n, l = rows.size, rows.shape[1]
        entries = np.arange(n)
        self.equal = coo_matrix((np.ones(n), (rows.ravel(), entries)), shape=(len(sizes), n)).tocsr()
        self.whole = coo_matrix(
            (np.ones(n * l), (np.repeat(entries, l), np.repeat(entries.reshape(rows.shape), l, axis=0).ravel())),
            shape=(n, n),
        ).tocsr()

    def solved(self, tau: float, cost: NDArray[np.float64] | None = None) -> NDArray[np.float64] | None:
        """Return masses under which no belief exceeds tau; None if there are none."""
        from scipy.optimize import linprog
        from scipy.sparse import identity

        n = self.rows.size
        found: Any = linprog(
            np.zeros(n) if cost is None else cost,
            A_ub=identity(n, format="csr") - tau * self.whole,
            b_ub=np.zeros(n),
            A_eq=self.equal,
            b_eq=self.sizes.astype(float),
            method="highs",
        )
        return np.asarray(found.x).reshape(self.rows.shape) if found.status == 0 else None

    def spread(self, kind: NDArray[np.int64], tau: float) -> Types:
        """Return a design within tau that draws many types: the mean of several solutions, corrected for rounding."""
        rng = np.random.default_rng(0)  # not secret: it decides which of equally good designs is published
        tau = min(1.0, tau * (1 + EXACTNESS / 4))
        found = [self.solved(tau, rng.random(self.rows.size)) for _ in range(AVERAGED)]
        mass = np.mean([one for one in found if one is not None], axis=0).clip(min=0)
        kept = mass.sum(axis=1) > LEAST_MASS
        rows, mass = self.rows[kept], mass[kept]
        for _ in range(5):
            for _ in range(20):
                mass = np.minimum(mass, tau * mass.sum(axis=1, keepdims=True))
            mass *= (self.sizes / np.maximum(np.bincount(rows.ravel(), mass.ravel(), len(self.sizes)), 1e-300))[rows]
        return Types(kind, rows, mass / self.sizes[rows])


def check_types(
    compatibility: Compatibility, l: int, rows: Sequence[Sequence[int]], odds: Sequence[Sequence[float]]
) -> None:
    """Check that types consist of l distinct compatible kinds, and that the probabilities of every kind sum to 1."""
    kinds, first = np.unique(kinds_of(compatibility), return_index=True)
    if {len(row) for row in (*rows, *odds)} != {l} or len(rows) != len(odds):
        raise ValueError(f"types and chances are rows of {l}")
    types, chances = np.array(rows, np.int64), np.array(odds, float)
    if types.min() < 0 or types.max() >= len(kinds) or len(np.unique(types, axis=0)) != len(types):
        raise ValueError("each type must list kinds of values, and occur once")
    pairs = compatibility.pairs[np.ix_(first, first)]
    for a, b in combinations(range(l), 2):
        if not (pairs[types[:, a], types[:, b]] & (types[:, a] < types[:, b])).all():
            raise ValueError("a type must list compatible kinds in ascending order")
    sums = np.bincount(types.ravel(), chances.ravel(), len(kinds))
    if not (chances >= 0).all() or not (np.abs(sums - 1) < 1e-9).all():
        raise ValueError("the chances of a kind must sum to 1")


class Balanced(Law):
    """The law of the balanced design: draw a type by the published probabilities of the true value's kind, then one
    value of every other kind, uniformly.

    A draw rounds the chance of a type to 2^-52; the choice inside a kind is exact.
    """

    def __init__(self, compatibility: Compatibility, l: int, types: Types) -> None:
        super().__init__(compatibility, l)
        self.types = types
        self.sizes = types.sizes
        self.members = np.argsort(types.kind, kind="stable")
        self.starts = np.concatenate([[0], np.cumsum(self.sizes)])

    @cached_property
    def _each(self) -> NDArray[np.float64]:
        """Return P(R | v) of a set of every type, for a member of each of its kinds."""
        count = self.sizes[self.types.rows].prod(axis=1, dtype=float)
        return np.asarray(self.types.chances * self.sizes[self.types.rows] / count[:, None])

    def likelihood(self, sets: NDArray) -> NDArray[np.float64]:
        kinds = self.types.kind[sets]
        order = np.argsort(kinds, axis=1, kind="stable")
        number = self._numbers(np.take_along_axis(kinds, order, axis=1))
        weights = np.where(number[:, None] >= 0, self._each[number], 0.0)
        out = np.empty(sets.shape)
        np.put_along_axis(out, order, weights, axis=1)
        return out

    def _numbers(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the type of every row; -1 for one that is never drawn."""
        known, both = len(self.types.rows), np.concatenate([self.types.rows, rows])
        number = np.unique(both, axis=0, return_inverse=True)[1].ravel()
        out = np.full(len(both), -1)
        out[number[:known]] = np.arange(known)
        return out[number[known:]]

    def words(self) -> int:
        return 2 + self.l

    def kernel(self) -> RowKernel:
        rows, l = self.types.rows, self.l
        entry = np.argsort(rows.ravel(), kind="stable")
        entry = entry[self.types.chances.ravel()[entry] > 0]
        kind, number = rows.ravel()[entry], entry // l
        ends = np.flatnonzero(np.append(kind[1:] != kind[:-1], True))
        sums = np.cumsum(self.types.chances.ravel()[entry])
        begin = np.concatenate([[0.0], sums[ends][:-1]])[np.searchsorted(ends, np.arange(len(entry)))]
        steps = ((sums - begin) * 2.0**52).astype(np.uint64)
        steps[ends] = 1 << 52
        steps += kind.astype(np.uint64) << np.uint64(52)

        def draw(words: NDArray, codes: NDArray, out: NDArray) -> NDArray[np.int64]:
            wide = words.astype(np.uint64)
            own = self.types.kind[codes]
            chance = (wide[:, 0] << np.uint64(20)) | (wide[:, 1] >> np.uint64(12))
            sought = (own.astype(np.uint64) << np.uint64(52)) + chance
            drawn = rows[number[np.searchsorted(steps, sought, side="right")]]
            product = wide[:, 2 : 2 + l] * self.sizes[drawn].astype(np.uint64)
            again = unfair(product, self.sizes[drawn]) & (drawn != own[:, None])
            picked = self.members[self.starts[drawn] + (product >> np.uint64(32)).astype(np.int64)]
            out[:] = np.sort(np.where(drawn == own[:, None], codes[:, None], picked), axis=1)
            return np.flatnonzero(again.any(axis=1))

        return draw

    def inclusion(self) -> NDArray[np.float64]:
        """Compute inclusion probabilities as second moments of scores that are 1 for one value."""
        return self.second_moments(np.eye(self.F)).T

    def worst_posterior(self, prior: NDArray[np.float64]) -> float:
        """Return the largest posterior: the likeliest value of one kind beside the least likely ones of the others."""
        high, low = np.zeros(len(self.sizes)), np.full(len(self.sizes), np.inf)
        np.maximum.at(high, self.types.kind, prior)
        np.minimum.at(low, self.types.kind, prior)
        mass = self.types.chances * self.sizes[self.types.rows]
        top, least = mass * high[self.types.rows], mass * low[self.types.rows]
        others = least.sum(axis=1, keepdims=True) - least
        return float(np.divide(top, top + others, out=np.zeros_like(top), where=top > 0).max())

    def second_moments(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute second moments; given a type, the other members are independent, so means and variances add."""
        rows, chances, kinds = self.types.rows, self.types.chances, len(self.sizes)
        first, second = np.zeros((len(scores), kinds)), np.zeros((len(scores), kinds))
        mean = np.stack([np.bincount(self.types.kind, one, kinds) for one in scores]) / self.sizes
        square = np.stack([np.bincount(self.types.kind, one**2, kinds) for one in scores]) / self.sizes
        for own in range(self.l):
            others = [place for place in range(self.l) if place != own]
            total = mean[:, rows[:, others]].sum(axis=2)
            spread = (square - mean**2)[:, rows[:, others]].sum(axis=2)
            for into, what in ((first, total), (second, total**2 + spread)):
                for group in range(len(scores)):
                    into[group] += np.bincount(rows[:, own], chances[:, own] * what[group], kinds)
        kind = self.types.kind
        return np.asarray(scores**2 + 2 * scores * first[:, kind] + second[:, kind])
