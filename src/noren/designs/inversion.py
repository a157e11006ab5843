"""Estimates of true counts from inclusion counts: the linear algebra of designs.

Inclusion counts w say how often each value stands in a published set. Their expectation is a linear function of the
true counts x, one matrix per column; over several columns the matrices multiply axis by axis. Uniform decoys invert
theirs in closed form; a semantic design inverts the matrix of its inclusion probabilities, as far as that goes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import inf
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from noren.designs.decoys import DecoyDesign
    from noren.designs.semantic.law import CertainSets


WORST_CONDITION = 1e8
"""Condition number of inclusion probabilities beyond which directions count as lost."""


def along(matrix: NDArray, table: NDArray, axis: int) -> NDArray[np.float64]:
    """Multiply a matrix into one dimension of a table."""
    return np.moveaxis(np.tensordot(matrix, table, axes=(1, axis)), 0, axis)


def stretched(values: NDArray, axis: int, ndim: int) -> NDArray[np.float64]:
    """Reshape values to multiply them into one dimension of a table."""
    shape = [1] * ndim
    shape[axis] = -1
    return np.asarray(values, np.float64).reshape(shape)


@dataclass(frozen=True, eq=False)
class Groups:
    """A partition of base values for an answer: `of` maps a value to a group 0..size-1, or to -1 for "not counted"."""

    of: NDArray[np.int64]
    size: int
    is_identity: bool = False
    """Every base value is a group of its own."""

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Return the number of base values of every group."""
        return np.bincount(self.of[self.of >= 0], minlength=self.size).astype(np.int64)

    @cached_property
    def membership(self) -> NDArray[np.float64]:
        """Return a (groups, d) array: 1 if a group contains a base value."""
        return np.asarray(self.of == np.arange(self.size)[:, None], np.float64)

    def sum(self, table: NDArray, axis: int) -> NDArray:
        """Sum base values into groups along one dimension of a table."""
        if self.is_identity:
            return table
        moved = np.moveaxis(table, axis, 0)
        out = np.zeros((self.size, *moved.shape[1:]))
        counted = self.of >= 0
        np.add.at(out, self.of[counted], moved[counted])
        return np.moveaxis(out, 0, axis)


@dataclass(frozen=True)
class ClosedInversion:
    """The inverse for uniform decoys, whose matrix is Po J + (Pt - Po) I."""

    design: DecoyDesign

    error: None = None
    undetermined: int = 0

    @property
    def condition(self) -> float:
        return self.design.eta / self.design.p_gap

    @property
    def inclusion(self) -> tuple[float, float]:
        return self.design.p_other, self.design.p_gap

    def invert(self, w: NDArray, axis: int) -> NDArray[np.float64]:
        design = self.design
        return np.asarray((w - design.p_other / design.eta * w.sum(axis=axis, keepdims=True)) / design.p_gap)

    def scoring(self, groups: Groups) -> ClosedScoring:
        return ClosedScoring(self.design, groups)


@dataclass(frozen=True, eq=False)
class ClosedScoring:
    """The score of a record for a group G: (|R n G| - |G| Po) / (Pt - Po)."""

    design: DecoyDesign
    groups: Groups

    @cached_property
    def lost(self) -> NDArray[np.bool_]:
        return np.zeros(self.groups.size, np.bool_)

    def sums(self, w: NDArray, axis: int) -> NDArray[np.float64]:
        records = w.sum(axis=axis, keepdims=True) / self.design.eta
        chance = stretched(self.groups.sizes * self.design.p_other, axis, w.ndim)
        return np.asarray((self.groups.sum(w, axis) - chance * records) / self.design.p_gap)

    @cached_property
    def squares(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return E[score^2] of every group given a value inside it, and given one outside, by hypergeometric
        moments."""
        d, eta, p = self.design.d, self.design.eta, self.design.p
        g = self.groups.sizes.astype(np.float64)
        chance = g * self.design.p_other

        def about(population: int, marked: NDArray, drawn: int, shift: float) -> NDArray:
            """Return E[(shift + H - chance)^2] for H marked values among `drawn` of `population`."""
            share = marked / max(population, 1)
            spread = drawn * share * (1 - share) * (population - drawn) / max(population - 1, 1)
            return np.asarray(spread + (shift + drawn * share - chance) ** 2)

        tails = about(d, g, eta, 0.0)
        inside = p * about(d - 1, np.maximum(g - 1, 0), eta - 1, 1.0) + (1 - p) * tails
        outside = p * about(d - 1, np.minimum(g, d - 1), eta - 1, 0.0) + (1 - p) * tails
        scale = self.design.p_gap**2
        return inside / scale, outside / scale

    def second_moments(self, x: NDArray, axis: int) -> NDArray[np.float64]:
        inside, outside = (stretched(moment, axis, x.ndim) for moment in self.squares)
        return np.asarray(outside * x.sum(axis=axis, keepdims=True) + (inside - outside) * self.groups.sum(x, axis))

    def noise(self, squared: NDArray, axis: int) -> float:
        return 0.0


class Moments(Protocol):
    """A protocol: designs that know the second moments of their scores."""

    def second_moment(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return E[score^2 | v] of a set, for rows of each value's contribution to a score."""


KEPT_SUM = 1e-6
"""A sum whose score misses its values by more is lost."""


@dataclass(frozen=True, eq=False)
class MatrixInversion:
    """The inverse for inclusion counts w = M' x."""

    design: Moments
    matrix: NDArray[np.float64]
    """M[v, u] = P(u in R | v)."""
    inverse: NDArray[np.float64]
    """Of M'; on sums that are determined it is right, on others it is finite."""
    condition: float
    undetermined: int
    """Independent sums that are lost."""
    unreliable: bool
    """Theory says that sums are lost, and the matrix does not show which."""
    error: float | None
    """Largest Monte Carlo error of M, 0 if exact; None where M has a closed form."""
    draws: float
    """Per true value, behind M."""

    @property
    def inclusion(self) -> tuple[float, NDArray[np.float64]]:
        return 0.0, self.matrix

    def invert(self, w: NDArray, axis: int) -> NDArray[np.float64]:
        return along(self.inverse, w, axis)

    def scoring(self, groups: Groups) -> MatrixScoring:
        return MatrixScoring(self, groups)


@dataclass(frozen=True, eq=False)
class MatrixScoring:
    """The score of a record for a group: the sum over its set of a row of the inverted matrix."""

    system: MatrixInversion
    groups: Groups

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """Return a (groups, d) array: the contribution of each member of a set to the group's score."""
        return np.asarray(self.groups.membership @ self.system.inverse)

    @cached_property
    def squares(self) -> NDArray[np.float64]:
        """Return a (groups, d) array: E[score^2 | v] for every group and true value."""
        return self.system.design.second_moment(self.scores)

    @cached_property
    def lost(self) -> NDArray[np.bool_]:
        if not self.system.undetermined:
            return np.zeros(self.groups.size, np.bool_)
        if self.system.unreliable:
            part = self.groups.membership.sum(axis=1)
            return np.asarray((part > 0) & (part < len(self.system.matrix)))
        missed = np.abs(self.scores @ self.system.matrix.T - self.groups.membership)
        return np.asarray(missed.max(axis=1, initial=0.0) > KEPT_SUM)

    def sums(self, w: NDArray, axis: int) -> NDArray[np.float64]:
        return along(self.scores, w, axis)

    def second_moments(self, x: NDArray, axis: int) -> NDArray[np.float64]:
        return along(self.squares, x, axis)

    def noise(self, squared: NDArray, axis: int) -> NDArray[np.float64] | float:
        if self.system.draws == inf:
            return 0.0
        return along(self.squares - self.groups.membership, squared, axis) / self.system.draws


@lru_cache(maxsize=64)
def solve(design: CertainSets) -> MatrixInversion:
    """Invert the inclusion probabilities, without directions that they do not determine."""
    found = design.inclusion()
    fine, condition = design.identifiability()
    left, values, right = np.linalg.svd(found.matrix.T)
    noise = 2 * np.sqrt(design.d) * found.error  # bounds what Monte Carlo errors add to singular values
    kept = values > max(values[0] / WORST_CONDITION, noise)
    undetermined = int((~kept).sum())
    inverse = (right[kept].T / values[kept]) @ left[:, kept].T
    unreliable = not fine and undetermined == 0
    if undetermined or unreliable:
        condition = inf
    spread = float((found.matrix * (1 - found.matrix)).max())
    draws = inf if found.exact or found.error == 0 else spread / found.error**2
    lost = max(undetermined, int(unreliable))
    return MatrixInversion(design, found.matrix, inverse, condition, lost, unreliable, found.error, draws)
