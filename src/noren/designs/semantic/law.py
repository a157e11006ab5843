"""The likelihood of semantic designs: drawing, P(R | v), and sums over all sets: inclusion probabilities, second
moments, and what an adversary learns.

Sums are exact wherever a closed form, a dynamic programme or a list of at most five million sets gives them, and say
so; otherwise they are Monte Carlo means, the same on every machine and every run, with their largest standard error.
"""

# ruff: noqa: E741  l is the paper's letter

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from noren.designs.draw import DrawingPlan, draw_columns
from noren.designs.inversion import MatrixInversion, solve
from noren.designs.semantic.compatibility import Chain, Compatibility
from noren.secret import Keystream, RecordStream
from noren.statements.set_cells import SetCells, code_dtype, masks_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

LISTING_LIMIT = 5_000_000  # sets; up to here sums run over all of them
CHUNK = 1 << 17
DRAWS = 1 << 22  # in all, shared out evenly over the true values
_SUMS = 1 << 29  # draws times groups of scores that second moments may take
WORST_CONDITION = 1e12
_SEED = 20031  # not secret: it fixes the sums, never the decoys
_TWO_32 = 1 << 32
_ROWS = 1 << 14  # partial sets that grow at a time
_NONE = np.empty(0, np.int64)

RowKernel = Callable[[NDArray, NDArray, NDArray], NDArray[np.int64] | None]
"""(words, true codes, rows to fill with ascending codes) -> cells to draw again, or None."""


@dataclass(frozen=True)
class SemanticPlan(DrawingPlan):
    """A plan whose kernel writes rows of codes; for up to 64 values they become masks."""

    rows: RowKernel | None = None

    def _attempt(self, words: NDArray[np.uint32], codes: NDArray, out: NDArray) -> NDArray[np.int64]:
        assert self.rows is not None
        rows = out if out.ndim == 2 else np.empty((len(codes), self.eta), code_dtype(self.d))
        again = self.rows(words, codes, rows)
        if out.ndim == 1:
            out[:] = masks_of(rows, self.d)
        return _NONE if again is None else again


class Law(ABC):
    """The likelihood P(R | v) of one design over one compatibility, with its exact sums."""

    def __init__(self, compatibility: Compatibility, l: int) -> None:
        self.compatibility = compatibility
        self.F = compatibility.F
        self.l = l

    @abstractmethod
    def likelihood(self, sets: NDArray) -> NDArray[np.float64]:
        """Return P(R | v) for each feasible set, a row of ascending codes, and each of its members v."""

    @abstractmethod
    def words(self) -> int:
        """Return the number of 32-bit words of one draw."""

    @abstractmethod
    def kernel(self) -> RowKernel:
        """Return the kernel that draws from words."""

    @cached_property
    def plan(self) -> SemanticPlan:
        if self.l in (1, self.F):
            return SemanticPlan(self.F, self.l, need=0, heads=_TWO_32)
        return SemanticPlan(self.F, self.l, need=self.words(), heads=_TWO_32, rows=self.kernel())

    def inclusion(self) -> NDArray[np.float64] | None:
        """Return P(u in R | v) if a closed form or dynamic programme gives it."""
        return None

    def second_moments(self, scores: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Return E[(sum of scores over R)^2 | v] if a dynamic programme gives it."""
        return None

    def worst_posterior(self, prior: NDArray[np.float64]) -> float | None:
        """Return the largest P(v | R) over all sets, if a dynamic programme gives it."""
        return None

    def listed(self) -> Iterator[tuple[NDArray, NDArray[np.float64]]] | None:
        """Return all feasible sets with P(R | v), in chunks; None if there are too many."""
        sets = list_sets(self.compatibility, self.l, LISTING_LIMIT)
        return None if sets is None else self._chunks(sets)

    def _chunks(self, sets: NDArray) -> Iterator[tuple[NDArray, NDArray[np.float64]]]:
        for start in range(0, len(sets), CHUNK):
            part = sets[start : start + CHUNK]
            yield part, self.likelihood(part)

    def sample(self, codes: NDArray, rng: np.random.Generator) -> NDArray:
        """Draw rows of codes for these true codes from a statistical generator, for sums and never for a release."""
        out = np.empty((len(codes), self.l), code_dtype(self.F))
        if self.plan.rows is None:
            out[:] = np.arange(self.F) if self.l == self.F else codes[:, None]
            return out
        left = np.arange(len(codes))
        while left.size:
            words = rng.integers(0, _TWO_32, (left.size, self.plan.need), np.uint32)
            rows = np.empty((left.size, self.l), out.dtype)
            again = self.plan.rows(words, codes[left].astype(out.dtype), rows)
            out[left] = rows
            left = _NONE if again is None else left[again]
        return out


def units_of(words: NDArray[np.uint32]) -> NDArray[np.float64]:
    """Turn pairs of words into numbers in [0, 1) of 53 bits."""
    return np.asarray(
        ((words[:, ::2].astype(np.uint64) << np.uint64(21)) | (words[:, 1::2] >> np.uint32(11))) * 2.0**-53
    )


def spread_members(sets: NDArray, values: NDArray, F: int) -> csr_array:
    """Return a sparse matrix with a row for each set: values[i, j] in the column of member sets[i, j]."""
    from scipy.sparse import csr_array

    n, l = sets.shape
    return csr_array((values.ravel(), sets.ravel().astype(np.int64), np.arange(n + 1) * l), shape=(n, F))


def sum_pairs(sets: NDArray, likelihood: NDArray[np.float64], F: int) -> NDArray[np.float64]:
    """Return [v, u]: the sum of P(set | v) over the listed sets that contain v and u."""
    members = spread_members(sets, np.ones(sets.shape), F)
    return np.asarray((spread_members(sets, likelihood, F).T @ members).todense())


def least_sums(costs: NDArray[np.float64], before: NDArray[np.int64], l: int) -> NDArray[np.float64]:
    """Return an (l, F + 1) array: the smallest sum of k pairwise compatible values among the first i of a chain."""
    out = np.full((l, len(costs) + 1), np.inf)
    out[0] = 0.0
    for k in range(1, l):
        out[k, 1:] = np.minimum.accumulate(costs + out[k - 1, before])
    return out


def list_sets(compatibility: Compatibility, l: int, limit: int) -> NDArray | None:
    """List all feasible sets of l values as rows of ascending codes, in lexicographic order; None beyond the limit."""
    F, chain = compatibility.F, compatibility.chain
    if chain is not None and set_weights(np.ones(F), chain, l)[0][l - 1, -1] > limit:
        return None
    found, count = [np.empty((0, l), code_dtype(F))], 0
    later = np.triu(compatibility.pairs, 1)
    waiting = [(np.empty((1, 0), found[0].dtype), np.ones((1, F), bool))]  # sets, and which later values fit
    while waiting:
        sets, fit = waiting.pop()
        missing = l - sets.shape[1]
        if missing == 0:
            found.append(sets)
            count += len(sets)
            if count > limit:
                return None
            continue
        row, value = np.nonzero(fit)
        parts = []
        for start in range(0, len(row), _ROWS):
            of, one = row[start : start + _ROWS], value[start : start + _ROWS]
            both = fit[of] & later[one]
            kept = both.sum(axis=1) >= missing - 1
            parts.append((np.column_stack([sets[of], one.astype(sets.dtype)])[kept], both[kept]))
        waiting += reversed(parts)
    return np.concatenate(found)


def set_weights(weights: NDArray[np.float64], chain: Chain, l: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return right[k, i], the weight of all sets of k + 1 of the last i places, and left[k, i], of the first i.

    Both are (l, F + 1) running sums from their own end, so that small sums at an end keep all their digits.
    """
    F = len(weights)
    right, left = np.zeros((l, F + 1)), np.zeros((l, F + 1))
    before, after = chain.before, (F - chain.after)[::-1]
    for k in range(l):
        left[k, 1:] = np.cumsum(weights * (left[k - 1, before] if k else 1.0))
        right[k, 1:] = np.cumsum(weights[::-1] * (right[k - 1, after] if k else 1.0))
    return right, left


def ways_beside(chain: Chain, right: NDArray[np.float64], left: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return [v, k]: the weight of the others in sets that contain v and k places to its left."""
    l, F = right.shape[0], len(chain.after)
    one = np.ones((F, 1))
    before = np.hstack([one, left[: l - 1, chain.before].T])
    after = np.hstack([one, right[: l - 1, F - chain.after].T])
    return np.asarray(before * after[:, ::-1])


def pair_weights(
    weights: NDArray[np.float64], chain: Chain, right: NDArray[np.float64], left: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return [v, u]: the weight of the sets that contain both places; on the diagonal, of those that contain v."""
    l, F = right.shape[0], len(weights)
    before = np.vstack([np.ones(F), left[: l - 1, chain.before]])  # [k, v]: k places left of v
    after = np.vstack([np.ones(F), right[: l - 1, F - chain.after]])
    upper = np.zeros((F, F))
    step = np.where(np.arange(F) >= chain.after[:, None], weights, 0.0)  # from v to u with no place between them
    for between in range(l - 1):
        rest = l - 1 - between
        upper += step * (before[:rest].T @ after[:rest][::-1])
        sums = np.hstack([np.zeros((F, 1)), np.cumsum(step, axis=1)])
        step = weights * sums[:, chain.before]
    upper *= weights[:, None]
    return np.asarray(upper + upper.T + np.diag(weights * ways_beside(chain, right, left).sum(axis=1)))


def score_moments(
    weights: NDArray[np.float64], scores: NDArray[np.float64], near: NDArray[np.int64], l: int
) -> NDArray[np.float64]:
    """Return [p, k, g, i]: the sum of weight * (sum of scores[g])^p over the sets of k of the first i places, p = 0, 1,
    2.

    `near[i]` places before place i are compatible with it.
    """
    sums = np.zeros((3, l, len(scores), len(weights) + 1))
    sums[0, 0] = 1.0
    for k in range(1, l):
        m0, m1, m2 = sums[:, k - 1][:, :, near]
        grown = (m0, m1 + scores * m0, m2 + 2.0 * scores * m1 + scores**2 * m0)
        sums[:, k, :, 1:] = np.cumsum(weights * np.stack(grown), axis=2)
    return sums


@dataclass(frozen=True)
class Inclusion:
    """Inclusion probabilities: matrix[v, u] = P(u in R | v)."""

    matrix: NDArray[np.float64]
    exact: bool
    error: float = 0.0

    def condition(self) -> float:
        """Return the condition number of the system from inclusion counts to true counts; infinite if it is
        singular."""
        singular = np.linalg.svd(self.matrix, compute_uv=False)
        if singular[-1] <= singular[0] * len(self.matrix) * np.finfo(float).eps:
            return float("inf")
        return float(singular[0] / singular[-1])


@dataclass(frozen=True)
class Moments:
    """Second moments: values[g, v] = E[(sum of scores[g] over R)^2 | v]."""

    values: NDArray[np.float64]
    exact: bool
    error: float = 0.0


def inclusion(law: Law, draws: int = DRAWS) -> Inclusion:
    matrix = law.inclusion()
    if matrix is not None:
        return Inclusion(matrix, exact=True)
    each = max(2, draws // law.F)
    exact, weighted = _weighted_sets(law, each)
    out = np.zeros((law.F, law.F))
    for sets, weights in weighted:
        out += sum_pairs(sets, weights, law.F)
    if exact:  # rows have 1 on the diagonal, but for the rounding of millions of additions
        diagonal = np.diag(out)
        return Inclusion(np.asarray(out / np.where(diagonal > 0, diagonal, 1)[:, None]), exact=True)
    out /= each
    return Inclusion(out, exact=False, error=float(np.sqrt(out * (1 - out) / each).max()))


def second_moments(law: Law, scores: NDArray, draws: int = DRAWS) -> Moments:
    scores = np.ascontiguousarray(scores, np.float64)
    if scores.ndim != 2 or scores.shape[1] != law.F:
        raise ValueError(f"scores must have one column for each of the {law.F} values")
    values = law.second_moments(scores)
    if values is not None:
        return Moments(values, exact=True)
    each = max(2, min(draws, _SUMS // max(1, len(scores))) // law.F)
    exact, weighted = _weighted_sets(law, each)
    second, fourth = np.zeros(scores.shape), np.zeros(scores.shape)
    for sets, weights in weighted:
        squares = (spread_members(sets, np.ones(sets.shape), law.F) @ scores.T) ** 2
        chances = spread_members(sets, weights, law.F).T
        second += (chances @ squares).T
        fourth += (chances @ squares**2).T
    if exact:
        return Moments(second, exact=True)
    second, fourth = second / each, fourth / each
    error = float(np.sqrt(np.maximum(fourth - second**2, 0) / each).max())
    return Moments(second, exact=False, error=error)


def _weighted_sets(law: Law, each: int) -> tuple[bool, Iterator[tuple[NDArray, NDArray[np.float64]]]]:
    """Return all sets with P(R | v) of their members; or `each` draws for every true value."""
    listed = law.listed()
    return (True, listed) if listed is not None else (False, _samples(law, each))


def _samples(law: Law, each: int) -> Iterator[tuple[NDArray, NDArray[np.float64]]]:
    rng = np.random.default_rng(_SEED)
    total = each * law.F
    for start in range(0, total, CHUNK):
        codes = np.arange(start, min(start + CHUNK, total)) // each
        sets = law.sample(codes, rng)
        yield sets, (sets == codes[:, None]).astype(float)


class CertainSets(BaseModel, ABC):
    """The base of designs under which every set contains the true value."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    if TYPE_CHECKING:  # fields of every such design
        name: str
        d: int
        eta: int

    @abstractmethod
    def make_law(self) -> Law:
        """Return P(R | v) under these parameters."""

    @property
    def law(self) -> Law:
        return _law_of(self)

    @property
    def p(self) -> float:
        """Return the probability with which the true value is put in on purpose: 1."""
        return 1.0

    @property
    def p_true(self) -> float:
        return 1.0

    @property
    def epsilon(self) -> float:
        """Return infinity, because every set excludes values."""
        return inf

    @property
    def floor(self) -> float:
        return 0.0

    @property
    def is_exact(self) -> bool:
        return self.eta == 1

    @property
    def is_blind(self) -> bool:
        return not self.is_exact and self.eta == self.d

    @property
    def is_even(self) -> bool:
        return False

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:12]

    @property
    def tells(self) -> str:
        """Return nothing: all parameters follow from public facts."""
        return ""

    def expected_inside(self, codes: NDArray) -> float:
        return float(len(codes))

    def member_weights(self, sets: NDArray) -> NDArray[np.float64]:
        return self.law.likelihood(np.asarray(sets, np.int64))

    def inclusion(self, draws: int = DRAWS) -> Inclusion:
        """Return matrix[v, u] = P(u in R | v), exactly if possible, otherwise by Monte Carlo with its error."""
        return _inclusion_of(self, draws)

    def inclusion_matrix(self) -> NDArray[np.float64]:
        return self.inclusion().matrix

    def second_moment(self, scores: NDArray) -> NDArray[np.float64]:
        """Return E[(sum over u in R of scores[g, u])^2 | v] for groups g and true values v."""
        return second_moments(self.law, scores).values

    def identifiability(self) -> tuple[bool, float]:
        """Return whether true counts can be recovered from inclusion counts, and the condition number."""
        condition = self.inclusion().condition()
        return condition < WORST_CONDITION, condition

    @property
    def inversion(self) -> MatrixInversion:
        return solve(self)

    @property
    def plan(self) -> SemanticPlan:
        """Return the plan that draws sets from words, for `designs.draw`."""
        return self.law.plan

    def draw(
        self,
        codes: NDArray,
        randomness: Keystream | RecordStream,
        *,
        attribute: str,
        digests: NDArray | None = None,
        threads: int | None = None,
    ) -> SetCells:
        """One set for each true code. Memoised: a pure function of secret, attribute, record key, code and design."""
        design: Any = self
        columns = {attribute: codes}
        cells = draw_columns({attribute: design}, columns, randomness, digests=digests, threads=threads)[attribute]
        assert isinstance(cells, SetCells)
        return cells


@lru_cache(maxsize=128)
def _law_of(design: CertainSets) -> Law:
    return design.make_law()


@lru_cache(maxsize=128)
def _inclusion_of(design: CertainSets, draws: int) -> Inclusion:
    found = inclusion(design.law, draws)
    found.matrix.flags.writeable = False  # shared by all who ask
    return found
