"""What a statement in sets knows about the design that drew them. The designs themselves live in `designs/`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from noren.statements.batch import CodeCells
from noren.statements.set_cells import SetCells

if TYPE_CHECKING:
    from noren.secret import Keystream, RecordStream


class Scoring(Protocol):
    """Unbiased scores of records for groups of base values: their sums, second moments and what is lost."""

    @property
    def lost(self) -> NDArray[np.bool_]:
        """Which groups' counts the sets do not determine."""

    def sums(self, w: NDArray, axis: int) -> NDArray[np.float64]:
        """Sums of the records' scores along one dimension, from inclusion counts."""

    def second_moments(self, x: NDArray, axis: int) -> NDArray[np.float64]:
        """Sum over the records of E[score^2] along one dimension, if the true table is x."""

    def noise(self, squared: NDArray, axis: int) -> NDArray[np.float64] | float:
        """Variance that inexact inclusion probabilities add, given squared counts of the base values."""


class Inversion(Protocol):
    """The way from inclusion counts back to true counts, one dimension of a table at a time."""

    @property
    def condition(self) -> float:
        """By how much it can amplify noise; infinite where sums are lost."""

    @property
    def undetermined(self) -> int:
        """Independent sums of counts that the sets do not determine."""

    @property
    def error(self) -> float | None:
        """Largest Monte Carlo error of the inclusion probabilities; None where they have a closed form."""

    def expected(self, x: NDArray, axis: int, *, back: bool = False) -> NDArray[np.float64]:
        """Expected inclusion counts of a true table x, or `back` the transpose of that."""

    def invert(self, w: NDArray, axis: int) -> NDArray[np.float64]:
        """The table whose expected inclusion counts are w."""

    def scoring(self, groups: Any) -> Scoring:
        """Scores for groups of base values (`designs.inversion.Groups`)."""


class Beliefs(NamedTuple):
    """What somebody who knows how common the values are makes of one person's set.

    None where nothing can be said without another assumption.
    """

    most_common: float
    """Belief in the most common value before any release."""
    uniform_mean: float | None = None
    """Mean belief in the truth after, if all values were believed alike before."""
    uniform_worst: float | None = None
    mean_true: float | None = None
    """Mean belief in the truth after."""
    worst: float | None = None
    """Largest belief in a value after."""
    worst_at_most: float | None = None
    """What that is at most, where it is not known better."""
    epsilon: float | None = None
    total_variation: float | None = None
    """How far the belief may move, whatever it was before."""


class Design(Protocol):
    """How a set of eta values is drawn given the truth, and with which probability."""

    @property
    def name(self) -> str:
        """What a manifest calls it."""

    @property
    def d(self) -> int:
        """Values of the domain."""

    @property
    def eta(self) -> int:
        """Values of every set."""

    @property
    def p(self) -> float:
        """Probability that the truth is put in on purpose; 1 if it always is inside."""

    @property
    def p_true(self) -> float:
        """Probability that the set contains the truth."""

    @property
    def epsilon(self) -> float:
        """Local differential privacy of one set; infinite where some value is ruled out."""

    @property
    def is_exact(self) -> bool:
        """Whether every set is the truth alone."""

    @property
    def is_blind(self) -> bool:
        """Whether sets tell nothing: each is as likely under every value."""

    @property
    def title(self) -> str:
        """Everything that decides what is drawn, short: what a register remembers."""

    @property
    def tells(self) -> str:
        """What its published parameters tell about the exact counts, in words; empty where they are public facts."""

    def star(self, sets: NDArray) -> float | NDArray[np.float64]:
        """What any value gets where one inside a set gets 1 more: P(R | v) is proportional to 1[v in R] + star. One
        number, or one for each row of codes; 0 where values outside are impossible."""

    def expected_inside(self, codes: NDArray) -> float:
        """How many of these true codes are expected to be in their sets."""

    def member_weights(self, sets: NDArray) -> NDArray[np.float64]:
        """P(R | v) for rows R of eta ascending codes and each of their members v; 0 for a set it never draws."""

    @property
    def floor(self) -> float:
        """P(R | v) for a value v outside R."""

    @property
    def threshold(self) -> float | None:
        """Smallest distance between two values of a set; None if any values go together."""

    @property
    def inversion(self) -> Inversion:
        """How inclusion counts become true counts."""

    def inclusion_matrix(self) -> NDArray[np.float64]:
        """[v, u] = P(u in R | v)."""

    def beliefs(self, counts: NDArray) -> Beliefs:
        """What one set tells somebody who knows how often every value occurs."""

    def worst_belief(self) -> float | None:
        """The largest P(v | R) over all sets, all values believed alike before; None where nobody has counted it."""

    def draw(
        self, codes: NDArray, randomness: Keystream | RecordStream, *, attribute: str, digests: NDArray | None = None
    ) -> SetCells | CodeCells:
        """One set, or one value by a design that changes values, for each true code.

        Memoised: a pure function of secret, attribute, record key, code and design.
        """

    def model_dump(self, *, mode: str) -> dict[str, Any]: ...
