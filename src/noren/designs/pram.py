"""Post-randomisation (PRAM): publish one value, which may differ from the true one (Gouweleeuw et al. 1998).

With probability `keep` the true value stays; otherwise a value is drawn by published shares s, perhaps the true one:
P[v, u] = keep 1[u = v] + (1 - keep) s_u. With equal shares that is randomised response, a function of public facts.
With shares near the column's own distribution the matrix is (nearly) invariant, s'P = s': the published counts then
already estimate the true ones, and an analyst who ignores the method is right on average about this column alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from noren.designs.draw import HALF, DrawingPlan, draw_columns, unfair
from noren.designs.inversion import MatrixInversion
from noren.secret import Keystream, RecordStream
from noren.statements.batch import CodeCells
from noren.statements.set_cells import code_dtype

MOST_PARTS = 1 << 20
NO_INFORMATION = 1e-9
LEAST_PEOPLE = 20
"""A part of a published distribution stands for so many."""


class PramDesign(BaseModel):
    """The design of a column whose values are changed at random.

    Guarantee: one published value is `epsilon`-locally differentially private, so that it moves no belief further than
    tanh(epsilon / 4), whatever was believed before.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Literal["pram"] = "pram"
    d: int = Field(ge=1, description="Number of values in the attribute's domain.")
    keep: float = Field(gt=0, lt=1, description="Probability that the true value is kept deliberately.")
    parts: tuple[int, ...] | None = Field(
        default=None, description="Shares with which the other values are drawn, as whole numbers; equal by default."
    )

    @model_validator(mode="after")
    def _fits(self) -> PramDesign:
        if self.parts is not None and (len(self.parts) != self.d or min(self.parts) < 1):
            raise ValueError("every value of the domain needs a part of at least 1")
        if self.parts is not None and sum(self.parts) > MOST_PARTS:
            raise ValueError(f"more than {MOST_PARTS} parts")
        return self

    @classmethod
    def within(cls, d: int, rho: float, parts: tuple[int, ...] | None = None) -> PramDesign:
        """Return the design with the largest keep whose likelihood ratio is at most rho > 1."""
        least = 1 / d if parts is None else min(parts) / sum(parts)
        keep = (rho - 1) * least / (1 + (rho - 1) * least)
        return cls(d=d, keep=max(np.floor(keep * 1e4) / 1e4, 1e-4) if keep >= 1e-4 else keep, parts=parts)

    @property
    def shares(self) -> NDArray[np.float64]:
        """Return s, the distribution from which a value is drawn if it is not kept."""
        parts = np.ones(self.d) if self.parts is None else np.array(self.parts, np.float64)
        return np.asarray(parts / parts.sum())

    @property
    def rho(self) -> float:
        """Return the largest ratio between the probabilities of one published value under two true ones."""
        return 1.0 if self.d == 1 else 1 + self.keep / ((1 - self.keep) * float(self.shares.min()))

    # ------------------------------------------------------------------ what every design answers

    @property
    def eta(self) -> int:
        return 1

    @property
    def p(self) -> float:
        return self.keep

    @property
    def p_true(self) -> float:
        """Return the probability that the published value is true, for a value drawn from the shares."""
        return self.keep + (1 - self.keep) * float((self.shares**2).sum())

    def expected_inside(self, codes: NDArray) -> float:
        return float((self.keep + (1 - self.keep) * self.shares)[codes].sum())

    @property
    def epsilon(self) -> float:
        return log(self.rho)

    @property
    def is_exact(self) -> bool:
        return self.d == 1

    @property
    def is_blind(self) -> bool:
        return self.d > 1 and self.keep < NO_INFORMATION

    @property
    def is_even(self) -> bool:
        return True

    @property
    def title(self) -> str:
        return self.name if self.parts is None else f"{self.name} {','.join(map(str, self.parts))}"

    @property
    def tells(self) -> str:
        return (
            ""
            if self.parts is None
            else (f"the matrix discloses the exact distribution, rounded to {sum(self.parts)} parts")
        )

    @property
    def floor(self) -> float:
        """Return P(u | v) for another value v, up to the factor by which `member_weights` scales every u."""
        return (1 - self.keep) / self.d

    def member_weights(self, sets: NDArray) -> NDArray[np.float64]:
        shares = self.shares[np.asarray(sets)]
        return np.asarray((self.keep + (1 - self.keep) * shares) / (shares * self.d))

    @property
    def threshold(self) -> None:
        return None

    def inclusion_matrix(self) -> NDArray[np.float64]:
        return np.asarray(self.keep * np.eye(self.d) + (1 - self.keep) * self.shares[None, :])

    def second_moment(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return E[score^2 | v] for rows of scores of every published value."""
        square = scores**2
        return np.asarray(self.keep * square + (1 - self.keep) * (square @ self.shares)[:, None])

    @property
    def inversion(self) -> MatrixInversion:
        """Return M^-1 = (I - (1 - keep) 1 s') / keep, transposed for counts."""
        matrix = self.inclusion_matrix()
        inverse = (np.eye(self.d) - (1 - self.keep) * self.shares[:, None] * np.ones((1, self.d))) / self.keep
        return MatrixInversion(self, matrix, inverse, 1 / self.keep, 0, False, None, np.inf)

    def worst_belief(self) -> float:
        prior, other = 1 / self.d, (1 - self.keep) * self.shares
        return float(((self.keep + other) * prior / (self.keep * prior + other)).max())

    # ------------------------------------------------------------------ drawing

    @property
    def plan(self) -> PramPlan:
        """Return the plan that draws values from random words."""
        table = np.arange(self.d) if self.parts is None else np.repeat(np.arange(self.d), self.parts)
        return PramPlan(self.d, 1, need=2, heads=int(self.keep * (1 << 32)), table=table)

    def draw(
        self, codes: NDArray, randomness: Keystream | RecordStream, *, attribute: str, digests: NDArray | None = None
    ) -> CodeCells:
        """One value for each true code. Memoised: a pure function of secret, attribute, record key, code and design."""
        drawn = draw_columns({attribute: self}, {attribute: codes}, randomness, digests=digests)[attribute]
        assert isinstance(drawn, CodeCells)
        return drawn


@dataclass(frozen=True)
class PramPlan(DrawingPlan):
    """A plan with the words [coin, part] for each cell. The coin is rounded down to 2^-32, which never weakens
    privacy."""

    def empty(self, n: int) -> NDArray:
        return np.empty(n, code_dtype(self.d))

    def cells(self, data: NDArray) -> CodeCells:
        return CodeCells(self.d, data)

    def _attempt(self, words: NDArray[np.uint32], codes: NDArray, out: NDArray) -> NDArray[np.int64]:
        assert self.table is not None
        product = words[:, 1].astype(np.uint64) * np.uint64(len(self.table))
        drawn = self.table[product >> HALF]
        out[:] = np.where(words[:, 0] < self.heads, codes, drawn)
        return np.flatnonzero(unfair(product, len(self.table)))


def rounded_parts(counts: NDArray[np.int64], grid: int) -> tuple[int, ...]:
    """Return counts rounded to about `grid` whole parts, at least one per value, which is all that a published matrix
    discloses.

    A part stands for twenty people or more, so that those of a small table are not its counts.
    """
    total = max(1, int(counts.sum()))
    parts = min(grid, total // LEAST_PEOPLE)
    return tuple(int(part) for part in np.maximum(1, np.round(counts / total * parts)))
