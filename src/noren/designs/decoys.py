"""Uniform decoys: publish a set of eta values in which the true one hides (papers 000 and 002).

One attribute with a domain of d values. With probability p the set is the true value and eta - 1 distinct
others, drawn uniformly; otherwise it is eta distinct values drawn uniformly from the whole domain. The set is
therefore a noisy statement about the truth whose likelihood is known exactly, which is what lets a recipient
estimate counts and lets an auditor compute what an adversary learns.
"""

from __future__ import annotations

from math import ceil, comb, inf, log, nextafter, sqrt
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from noren.designs.inversion import ClosedInversion

if TYPE_CHECKING:
    from noren.designs.draw import DrawingPlan
    from noren.secret import Keystream, RecordStream
    from noren.statements.set_cells import SetCells

NO_INFORMATION = 1e-9
"""Pt - Po below this discloses nothing."""
CLOSEST_TO_ONE = 1.0 - 2.0**-40
"""A coin is drawn with 32 bits: a p beyond this, and below 1, is no different."""


class DecoyDesign(BaseModel):
    """The design of the sets of one attribute, and their probabilities.

    Guarantee: with p = 1 every set holds eta values, the true one among them, and inside a set the posterior odds
    of two values equal their prior odds. With p < 1 the set is also `epsilon`-locally differentially private.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Literal["uniform-decoys"] = "uniform-decoys"
    d: int = Field(ge=1, description="Number of values in the attribute's domain.")
    eta: int = Field(ge=1, description="Number of values in each published set.")
    p: float = Field(
        default=1.0, ge=0, le=1, description="Probability that the true value is put into the set deliberately."
    )
    prior: Literal["data"] | None = Field(
        default=None,
        description="'data' if eta and p were chosen from the exact counts and so disclose something about them.",
    )

    @model_serializer(mode="wrap")
    def _written(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Serialise the design; parameters that are public facts are written without their origin."""
        out: dict[str, Any] = handler(self)
        return out if self.prior is not None else {name: value for name, value in out.items() if name != "prior"}

    @model_validator(mode="after")
    def _fits(self) -> DecoyDesign:
        if self.eta > self.d:
            raise ValueError(f"eta={self.eta} exceeds the {self.d} values of the domain")
        return self

    @classmethod
    def exact(cls, d: int) -> DecoyDesign:
        """Return the design of a column that is published exactly."""
        return cls(d=d, eta=1, p=1.0)

    @classmethod
    def within(cls, d: int, rho: float, least: int = 1) -> DecoyDesign:
        """Return the design of smallest expected error with likelihood ratio at most rho > 1 and eta >= least.

        Equation 9 is then proportional to (d + (rho-1) eta)^2 / (eta (d - eta)) whatever the number of records, which
        falls up to eta = d / (rho + 1) and rises beyond: a function of d and rho alone.
        """
        if not 1 <= least < d or not rho > 1:
            raise ValueError(f"no best set size exists for sets of {least} of {d} values with rho = {rho:g}")
        a, best = rho - 1, d / (rho + 1)
        sizes = {min(max(eta, least), d - 1) for eta in (int(best), ceil(best))}
        eta = min(sorted(sizes), key=lambda eta: (d + a * eta) ** 2 / (eta * (d - eta)))
        return cls(d=d, eta=eta, p=largest_p(d, eta, rho))

    @property
    def is_exact(self) -> bool:
        return self.eta == 1 and self.p == 1.0

    @property
    def p_true(self) -> float:
        """Return Pt, the probability that the set contains the true value."""
        return self.p + (1 - self.p) * self.eta / self.d

    @property
    def p_other(self) -> float:
        """Return Po, the probability that the set contains one given other value."""
        if self.d == 1:
            return 1.0
        return self.p * (self.eta - 1) / (self.d - 1) + (1 - self.p) * self.eta / self.d

    @property
    def p_gap(self) -> float:
        """Return Pt - Po, computed without cancellation; 0 means that sets carry no information."""
        if self.d == 1:
            return 0.0
        return self.p * (self.d - self.eta) / (self.d - 1)

    @property
    def kappa_in(self) -> float:
        """Return P(R = Z | v) for a value v inside Z."""
        return self.p_true / comb(self.d - 1, self.eta - 1)

    @property
    def kappa_out(self) -> float:
        """Return P(R = Z | v) for a value v outside Z."""
        if self.eta == self.d:
            return 0.0
        return (1 - self.p_true) / comb(self.d - 1, self.eta)

    @property
    def rho(self) -> float:
        """Return the likelihood ratio between a value inside a set and one outside; infinite for p = 1."""
        if self.eta == self.d:
            return 1.0
        if self.p == 1.0:
            return inf
        return 1 + self.p * self.d / (self.eta * (1 - self.p))  # Pt (d - eta) / ((1 - Pt) eta) without cancellation

    @property
    def epsilon(self) -> float:
        """Return ln(rho), the local differential privacy of one published set."""
        return inf if self.rho == inf else log(self.rho)

    # ------------------------------------------------------------------ what every design answers

    @property
    def is_even(self) -> bool:
        return True

    @property
    def title(self) -> str:
        return self.name

    @property
    def tells(self) -> str:
        if self.prior is None:
            return ""
        return "p and eta were chosen from the exact counts and disclose something about them"

    @property
    def floor(self) -> float:
        return self.kappa_out

    @property
    def is_blind(self) -> bool:
        """Return whether every set is equally likely under every value, so that sets disclose nothing."""
        return not self.is_exact and self.d > 1 and self.p_gap < NO_INFORMATION

    def expected_inside(self, codes: NDArray) -> float:
        return self.p_true * len(codes)

    def member_weights(self, sets: NDArray) -> NDArray[np.float64]:
        return np.full(np.shape(sets), self.kappa_in)

    def inclusion_matrix(self) -> NDArray[np.float64]:
        return np.full((self.d, self.d), self.p_other) + self.p_gap * np.eye(self.d)

    @property
    def threshold(self) -> None:
        """Return no threshold: all values are compatible."""
        return None

    @property
    def inversion(self) -> ClosedInversion:
        return ClosedInversion(self)

    def worst_belief(self) -> float:
        return 1 / (self.eta + (self.d - self.eta) / self.rho)

    def worst_under(self, prior: NDArray[np.float64]) -> float:
        """Return the largest belief over all sets under this prior: the most frequent value beside the rarest ones."""
        ranked = np.sort(prior)
        top, beside = ranked[-1], ranked[: self.eta - 1].sum()
        return float(top / (top + beside + (1 - top - beside) / self.rho))

    @property
    def plan(self) -> DrawingPlan:
        """Return the plan that draws sets from random words."""
        from noren.designs.draw import plan_decoys

        return plan_decoys(self.d, self.eta, self.p)

    def draw(
        self, codes: NDArray, randomness: Keystream | RecordStream, *, attribute: str, digests: NDArray | None = None
    ) -> SetCells:
        """One set for each true code. Memoised randomness also needs the records' digests."""
        from noren.designs.draw import draw_columns

        drawn: Any = draw_columns({attribute: self}, {attribute: codes}, randomness, digests=digests)[attribute]
        cells: SetCells = drawn
        return cells

    # ------------------------------------------------------------------ error

    def expected_l2(self, n: int) -> float:
        """Expected L2 error, in relative frequencies, of linear inversion over n records (equation 9)."""
        d, eta, p = self.d, self.eta, self.p
        if p * p == 0 or eta == d:
            return inf
        square = (d - 1) ** 2 * eta / (p * p * d * n * (d - eta)) - (d - 1) / (d * n)
        return sqrt(max(0.0, square))


def largest_p(d: int, eta: int, rho: float) -> float:
    """Return the largest p whose likelihood ratio is at most rho > 1, rounded down; 1 if rho is infinite."""
    if rho == inf:
        return 1.0
    p = min((rho - 1) * eta / (d + (rho - 1) * eta), CLOSEST_TO_ONE)
    while p > 0 and 1 + p * d / (eta * (1 - p)) > rho:
        p = nextafter(p, 0.0)
    return p
