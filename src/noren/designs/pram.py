"""Post-randomisation (PRAM): publish one value, which may be another than the true one (Gouweleeuw et al. 1998).

With probability `keep` the true value stays; otherwise a value is drawn by published shares s, perhaps the true one:
P[v, u] = keep 1[u = v] + (1 - keep) s_u. With equal shares that is randomised response, a function of public facts.
With shares near the column's own distribution the matrix is (nearly) invariant, s'P = s': the published counts then
already estimate the true ones, and an analyst who ignores the method is right on average about this column alone.
"""

from __future__ import annotations

from math import log, tanh
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from noren.designs.draw import ROWS_AT_ONCE, _checked_digests, _inside_domain, _integers, _unfair
from noren.designs.inversion import MatrixInversion
from noren.secret import RecordStream
from noren.statements.design import Beliefs

if TYPE_CHECKING:
    from noren.secret import Keystream, KeystreamLane, RecordLane
    from noren.statements.batch import CodeCells

MOST_PARTS = 1 << 20
NO_INFORMATION = 1e-9
LEAST_PEOPLE = 20
"""A part of a published distribution stands for so many."""


class PramDesign(BaseModel):
    """How a published value follows from the true one.

    Guarantee: one published value is `epsilon`-locally differentially private, so that it moves no belief further than
    tanh(epsilon / 4), whatever was believed before.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Literal["pram"] = "pram"
    d: int = Field(ge=1, description="Number of values in the attribute's domain.")
    keep: float = Field(gt=0, lt=1, description="Probability that the true value is published on purpose.")
    parts: tuple[int, ...] | None = Field(
        default=None, description="The shares by which other values are drawn, as whole parts; equal if left out."
    )

    @model_validator(mode="after")
    def _fits(self) -> PramDesign:
        if self.parts is not None and (len(self.parts) != self.d or min(self.parts) < 1):
            raise ValueError("every value of the domain has a part of at least 1")
        if self.parts is not None and sum(self.parts) > MOST_PARTS:
            raise ValueError(f"more than {MOST_PARTS} parts")
        return self

    @classmethod
    def within(cls, d: int, rho: float, parts: tuple[int, ...] | None = None) -> PramDesign:
        """The design with the largest keep whose likelihood ratio stays within rho > 1."""
        least = 1 / d if parts is None else min(parts) / sum(parts)
        keep = (rho - 1) * least / (1 + (rho - 1) * least)
        return cls(d=d, keep=max(np.floor(keep * 1e4) / 1e4, 1e-4) if keep >= 1e-4 else keep, parts=parts)

    @property
    def shares(self) -> NDArray[np.float64]:
        """s: how a value is drawn that is not kept."""
        parts = np.ones(self.d) if self.parts is None else np.array(self.parts, np.float64)
        return np.asarray(parts / parts.sum())

    @property
    def rho(self) -> float:
        """The largest ratio between the probabilities of one published value under two true ones."""
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
        """Probability that the published value is true, for a value drawn by the shares."""
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
    def title(self) -> str:
        return self.name if self.parts is None else f"{self.name} {','.join(map(str, self.parts))}"

    @property
    def tells(self) -> str:
        return (
            "" if self.parts is None else f"the matrix tells the exact distribution, rounded to {sum(self.parts)} parts"
        )

    @property
    def floor(self) -> float:
        """P(u | v) for another value v, up to the factor by which `member_weights` scales every u."""
        return (1 - self.keep) / self.d

    def member_weights(self, sets: NDArray) -> NDArray[np.float64]:
        shares = self.shares[np.asarray(sets)]
        return np.asarray((self.keep + (1 - self.keep) * shares) / (shares * self.d))

    def star(self, sets: NDArray) -> NDArray[np.float64]:
        return np.asarray((1 - self.keep) / self.keep * self.shares[np.asarray(sets)[:, 0]])

    @property
    def threshold(self) -> None:
        return None

    def inclusion_matrix(self) -> NDArray[np.float64]:
        return np.asarray(self.keep * np.eye(self.d) + (1 - self.keep) * self.shares[None, :])

    def second_moment(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """E[score^2 | v] for rows of scores of every published value."""
        square = scores**2
        return np.asarray(self.keep * square + (1 - self.keep) * (square @ self.shares)[:, None])

    @property
    def inversion(self) -> MatrixInversion:
        """M^-1 = (I - (1 - keep) 1 s') / keep, and transposed for counts."""
        matrix = self.inclusion_matrix()
        inverse = (np.eye(self.d) - (1 - self.keep) * self.shares[:, None] * np.ones((1, self.d))) / self.keep
        return MatrixInversion(self, matrix, inverse, 1 / self.keep, 0, False, None, np.inf)

    def beliefs(self, counts: NDArray) -> Beliefs:
        """By Bayes' rule: pi_v P[v, u] over what u is published for at all, keep pi_u + (1 - keep) s_u."""
        shares = counts / counts.sum()
        even, known = self._posterior(np.full(self.d, 1 / self.d)), self._posterior(shares)
        return Beliefs(
            float(shares.max()),
            uniform_mean=even[0],
            uniform_worst=even[1],
            mean_true=known[0],
            worst=known[1],
            epsilon=self.epsilon,
            total_variation=tanh(self.epsilon / 4),
        )

    def worst_belief(self) -> float:
        return self._posterior(np.full(self.d, 1 / self.d))[1]

    def _posterior(self, prior: NDArray[np.float64]) -> tuple[float, float]:
        """Mean belief in the truth and largest belief in a value, over what may be published."""
        other = (1 - self.keep) * self.shares
        seen = self.keep * prior + other
        own = (self.keep + other) * prior
        squares = other**2 * ((prior**2).sum() - prior**2) + own**2
        return float((squares / seen).sum()), float((np.maximum(own, other * prior.max()) / seen).max())

    # ------------------------------------------------------------------ drawing

    def draw(
        self, codes: NDArray, randomness: Keystream | RecordStream, *, attribute: str, digests: NDArray | None = None
    ) -> CodeCells:
        """One value for each true code. The coin is rounded down to 2^-32: never less private than the design says.

        Memoised values rest on the order of the words here: [coin, part].
        """
        from noren.statements.batch import CodeCells

        codes = _integers(attribute, codes)
        if isinstance(randomness, RecordStream):
            digests = _checked_digests(digests, len(codes), self.d)
        out = _inside_domain(attribute, self.d, codes).copy()
        lane = randomness.lane(attribute)
        table = np.arange(self.d) if self.parts is None else np.repeat(np.arange(self.d), self.parts)
        for start in range(0, len(codes), ROWS_AT_ONCE):
            rows = np.arange(start, min(start + ROWS_AT_ONCE, len(codes)))
            attempt = 0
            while len(rows):
                keys = None if digests is None else digests[rows]
                rows = rows[self._attempt(lane, table, rows, keys, codes, attempt, out)]
                attempt += 1
        return CodeCells(self.d, out)

    def _attempt(
        self,
        lane: KeystreamLane | RecordLane,
        table: NDArray[np.int64],
        rows: NDArray[np.int64],
        keys: NDArray | None,
        codes: NDArray,
        attempt: int,
        out: NDArray,
    ) -> NDArray[np.bool_]:
        """Draw the cells of some rows, and say which must be drawn again."""
        words = np.array(lane.cell_words(keys, out.dtype.type(0) + codes[rows], 2, attempt)[:, :2], np.uint64)
        product = words[:, 1] * np.uint64(len(table))
        again = _unfair(product, len(table))
        kept = words[:, 0] < np.uint64(int(self.keep * (1 << 32)))
        drawn = table[(product >> np.uint64(32)).astype(np.int64)]
        out[rows] = np.where(kept, codes[rows], drawn)
        return np.asarray(again)


def rounded_parts(counts: NDArray[np.int64], grid: int) -> tuple[int, ...]:
    """Counts as about `grid` whole parts, every value at least one: all that a published matrix tells of them.

    A part stands for twenty people or more, so that those of a small table are not its counts.
    """
    total = max(1, int(counts.sum()))
    parts = min(grid, total // LEAST_PEOPLE)
    return tuple(int(part) for part in np.maximum(1, np.round(counts / total * parts)))
