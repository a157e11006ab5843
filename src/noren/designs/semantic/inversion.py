"""The linear system of a semantic column: its inclusion probabilities as a matrix, inverted as far as they go."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import inf
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from noren.designs.inversion import WORST_CONDITION, Groups, along

if TYPE_CHECKING:
    from noren.designs.semantic.design import SemanticDesign


class Moments(Protocol):
    """A design that knows the second moments of its scores."""

    def second_moment(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """E[score^2 | v] of a set, for rows of what every value adds to a score."""


KEPT_SUM = 1e-6
"""A sum whose score misses its values by more is lost."""


@dataclass(frozen=True, eq=False)
class MatrixInversion:
    """Inclusion counts are w = M' x."""

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

    def expected(self, x: NDArray, axis: int, *, back: bool = False) -> NDArray[np.float64]:
        return along(self.matrix if back else self.matrix.T, x, axis)

    def invert(self, w: NDArray, axis: int) -> NDArray[np.float64]:
        return along(self.inverse, w, axis)

    def scoring(self, groups: Groups) -> MatrixScoring:
        return MatrixScoring(self, groups)


@dataclass(frozen=True, eq=False)
class MatrixScoring:
    """A record's score for a group is the sum over its set of a row of the inverted matrix."""

    system: MatrixInversion
    groups: Groups

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """(groups, d): what a member of a set adds to the group's score."""
        return np.asarray(self.groups.membership @ self.system.inverse)

    @cached_property
    def squares(self) -> NDArray[np.float64]:
        """(groups, d): E[score^2 | v] for every group and true value."""
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
def solve(design: SemanticDesign) -> MatrixInversion:
    """Invert the inclusion probabilities, leaving out directions that they do not determine."""
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
