"""The protocol of designs for statements in sets. The designs themselves are in `designs/`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from noren.statements.batch import CodeCells
from noren.statements.set_cells import SetCells

if TYPE_CHECKING:
    from noren.secret import Keystream, RecordStream


class Scoring(Protocol):
    """Unbiased scores of records for groups of base values: sums, second moments, and undetermined groups."""

    @property
    def lost(self) -> NDArray[np.bool_]:
        """Return which groups' counts the sets do not determine."""

    def sums(self, w: NDArray, axis: int) -> NDArray[np.float64]:
        """Return sums of the records' scores along one dimension, from inclusion counts."""

    def second_moments(self, x: NDArray, axis: int) -> NDArray[np.float64]:
        """Return the sum over the records of E[score^2] along one dimension, if the true table is x."""

    def noise(self, squared: NDArray, axis: int) -> NDArray[np.float64] | float:
        """Return the variance from inexact inclusion probabilities, given squared counts of the base values."""


class Inversion(Protocol):
    """The estimation of true counts from inclusion counts, one dimension of a table at a time."""

    @property
    def condition(self) -> float:
        """Return how much it can amplify noise; infinite if sums are lost."""

    @property
    def undetermined(self) -> int:
        """Return the number of independent sums of counts that the sets do not determine."""

    @property
    def error(self) -> float | None:
        """Return the largest Monte Carlo error of the inclusion probabilities; None if they have a closed form."""

    @property
    def inclusion(self) -> tuple[float, float | NDArray[np.float64]]:
        """Return P(u in R | v): a number for all pairs, and what is added, a matrix [v, u] or a number where u = v."""

    def invert(self, w: NDArray, axis: int) -> NDArray[np.float64]:
        """Return the table whose expected inclusion counts are w."""

    def scoring(self, groups: Any) -> Scoring:
        """Return the scores for groups of base values (`designs.inversion.Groups`)."""


class Design(Protocol):
    """The distribution of a set of eta values given the true value."""

    @property
    def name(self) -> str:
        """Return the name in a manifest."""

    @property
    def d(self) -> int:
        """Return the number of values of the domain."""

    @property
    def eta(self) -> int:
        """Return the number of values of every set."""

    @property
    def p(self) -> float:
        """Return the probability that the true value is put in on purpose; 1 if it always is inside."""

    @property
    def p_true(self) -> float:
        """Return the probability that the set contains the true value."""

    @property
    def epsilon(self) -> float:
        """Return the local differential privacy of one set; infinite if some value is excluded."""

    @property
    def is_exact(self) -> bool:
        """Return whether every set contains only the true value."""

    @property
    def is_blind(self) -> bool:
        """Return whether sets disclose nothing, because each is equally likely under every value."""

    @property
    def is_even(self) -> bool:
        """Return whether all members of a set are equally likely under a uniform prior."""

    @property
    def title(self) -> str:
        """Return a short text of everything that determines the draws, for the register."""

    @property
    def tells(self) -> str:
        """Return what the published parameters disclose about the exact counts, in words; empty if they are public
        facts."""

    def expected_inside(self, codes: NDArray) -> float:
        """Return how many of these true codes are expected to be in their sets."""

    def member_weights(self, sets: NDArray) -> NDArray[np.float64]:
        """Return P(R | v) for rows R of eta ascending codes and each of their members v; 0 for a set that is never
        drawn."""

    @property
    def floor(self) -> float:
        """Return P(R | v) for a value v outside R."""

    @property
    def threshold(self) -> float | None:
        """Return the smallest distance between two values of a set; None if all values are compatible."""

    @property
    def inversion(self) -> Inversion:
        """Return the estimation of true counts from inclusion counts."""

    def inclusion_matrix(self) -> NDArray[np.float64]:
        """Return [v, u] = P(u in R | v)."""

    def worst_belief(self) -> float | None:
        """Return the largest P(v | R) over all sets under a uniform prior; None if unknown."""

    @property
    def plan(self) -> Any:
        """Return the plan that draws cells from random words (`designs.draw.DrawingPlan`)."""

    def draw(
        self, codes: NDArray, randomness: Keystream | RecordStream, *, attribute: str, digests: NDArray | None = None
    ) -> SetCells | CodeCells:
        """Draw one set, or one value by a design that changes values, for each true code.

        Memoised: a pure function of secret, attribute, record key, code and design.
        """

    def model_dump(self, *, mode: str) -> dict[str, Any]: ...
