"""Regression by likelihood, for cells without a design and for releases in which scores say too little.

A record's cells have the probability sum over values of P(cells | values) P(covariates) P(response | covariates). EM
finds the coefficients, with the distribution of hidden covariates free within every combination of exact ones and
shrunk a little towards all records together. Coefficients have a weak normal prior, so that a fit exists. Standard
errors come from the records' scores, less what the unknown distribution of the covariates takes away.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noren.errors import QueryError
from noren.estimates.counts.rows import row_numbers
from noren.estimates.statistics.corrected import Equations, ModelGrid, solve

STEPS = 1500
TOLERANCE = 2e-6
PRIOR_SD = 2.5
"""Of a coefficient, for a column of unit spread."""
ENTRIES = 60_000_000
SMALL = 3_000
"""Records up to which errors are also found by leaving parts out."""
PARTS = 16
SHRUNK = 4.0
"""Records for each combination of hidden covariates, by which their distribution in a slot is shrunk."""
TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Evidence:
    """P(cells | combination) of every different tuple, as entries: tuple, cell of the grid, probability."""

    row: NDArray[np.int64]
    cell: NDArray[np.int64]
    chance: NDArray[np.float64]
    first: NDArray[np.int64]
    counts: NDArray[np.float64]

    @classmethod
    def of(cls, grid: ModelGrid) -> Evidence:
        tables = [_likelihood(grid, place) for place in range(len(grid.hidden))]
        rows, cells, chances, total = [], [], [], 0
        for part in grid.chunks():
            weights = grid.weights(tables, part)
            row, column = np.nonzero(weights)
            total += len(row)
            if total > ENTRIES:
                raise QueryError(
                    "the cells leave too many combinations of values open for a fit by likelihood.",
                    hint="Use fewer hidden columns, hierarchy levels (`zip@1`) or intervals (`age/10`).",
                )
            rows.append(row + part.start)
            cells.append(grid.slot[part][row] * grid.shape[1] + column)
            chances.append(weights[row, column])
        row = np.concatenate(rows)
        first = np.searchsorted(row, np.arange(len(grid.counts)))
        return cls(row, np.concatenate(cells), np.concatenate(chances), first, grid.counts)

    def posterior(self, density: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(cell | record) of every entry."""
        weight = self.chance * density[self.cell]
        whole = np.add.reduceat(weight, self.first)
        return weight / np.maximum(whole, TINY)[self.row]


def _likelihood(grid: ModelGrid, place: int) -> NDArray[np.float64]:
    """(cells, atoms): P(cell | atom) of a hidden axis, values in an atom as common as its margin says."""
    scores = grid.records.scores[grid.hidden[place]]
    axis, member = scores.axis, grid.members[place]
    if axis.is_coarse:
        table, widths = axis.statement.table, axis.statement.domain.widths
        common = np.asarray(table.totals if table is not None else np.ones(axis.d) if widths is None else widths)
    else:
        common = scores.margin
    common = common + TINY
    whole = common @ member
    top = max(float(axis.rows.weight.max(initial=0.0)), TINY)
    return np.asarray((axis.rows.dense(axis.d) / top * common) @ member / np.maximum(whole, TINY))


@dataclass(frozen=True, eq=False)
class Slots:
    """Cells of the grid by their covariates: exact ones make slots, hidden ones are distributed within them."""

    exact: NDArray[np.int64]
    hidden: NDArray[np.int64]
    shape: tuple[int, int]

    @classmethod
    def of(cls, grid: ModelGrid, response: str) -> Slots:
        labels = {name: found for name, found in grid.labels.items() if name != response}
        slots, width = grid.shape
        exact = row_numbers([found[:, 0] for found in labels.values() if found.shape[1] == 1], slots)
        hidden = row_numbers([found[0] for found in labels.values() if found.shape[1] != 1], width)
        return cls(exact, hidden, (int(exact.max(initial=0)) + 1, int(hidden.max(initial=0)) + 1))

    def sum(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        place = self.exact[:, None] * self.shape[1] + self.hidden[None, :]
        sums = np.bincount(place.ravel(), table.ravel(), minlength=self.shape[0] * self.shape[1])
        return sums.astype(np.float64).reshape(self.shape)


def fit_likelihood(
    equations: Equations, response: str
) -> tuple[NDArray[np.float64], NDArray[np.float64], dict[str, float]]:
    """Coefficients (q, p), their covariance, and how the iteration ended."""
    grid = equations.grid
    evidence, slots = Evidence.of(grid), Slots.of(grid, response)
    table = np.maximum(grid.table, 0)
    table = table + 0.02 * table.mean()
    ridge = _prior(equations, table)
    theta = solve(equations, np.where(equations.counted, table, 0.0), ridge=ridge, steps=25).theta
    ascent = Ascent(equations, evidence, slots, ridge)
    best = ascent.climb(Point(table, theta, _variance(equations, table, theta)))
    cov = _covariance(equations, evidence, slots, best, ridge)
    n = float(evidence.counts.sum())
    if n <= SMALL:
        cov = _at_least(cov, ascent.jackknife(best))
    return best.theta, cov, {"iterations": float(best.steps), "moved": best.moved}


@dataclass(frozen=True, eq=False)
class Point:
    """Where EM stands: expected records of every cell, coefficients, the variance of a gaussian response."""

    table: NDArray[np.float64]
    theta: NDArray[np.float64]
    variance: float
    steps: int = 0
    moved: float = np.inf


@dataclass(frozen=True, eq=False)
class Ascent:
    """EM over the records' evidence."""

    equations: Equations
    evidence: Evidence
    slots: Slots
    ridge: NDArray[np.float64]

    def climb(self, start: Point, counts: NDArray[np.float64] | None = None) -> Point:
        """Until no coefficient moves, with as many records of every tuple as `counts` says."""
        equations, evidence, now = self.equations, self.evidence, start
        each = (evidence.counts if counts is None else counts)[evidence.row]
        gaussian = equations.family.name == "gaussian"
        for step in range(1, STEPS + 1):
            post = evidence.posterior(_density(equations, self.slots, now).ravel())
            sums = np.bincount(evidence.cell, post * each, minlength=now.table.size)
            table = sums.astype(np.float64).reshape(now.table.shape)
            ridge = self.ridge * (now.variance if gaussian else 1.0)
            inside = np.where(equations.counted, table, 0.0)
            theta = solve(equations, inside, now.theta, ridge=ridge, steps=4).theta
            moved = float(np.abs(theta - now.theta).max() / (1 + np.abs(now.theta).max()))
            now = Point(table, theta, _variance(equations, table, theta), step, moved)
            if moved < TOLERANCE:
                break
        return now

    def jackknife(self, best: Point) -> NDArray[np.float64]:
        """The variance of every coefficient, from fits that leave out a part of the records each.

        Information at the maximum says too little in a small release. As many parts as there are have a wider
        reference than the normal, which is put into the variance.
        """
        from scipy.stats import norm, t

        counts = self.evidence.counts.astype(np.int64)
        owner = np.repeat(np.arange(len(counts)), counts)
        part = np.random.default_rng(0).permutation(len(owner)) % PARTS  # which part is arbitrary: no secret
        found = []
        for left in range(PARTS):
            kept = np.bincount(owner[part != left], minlength=len(counts)).astype(np.float64)
            found.append(self.climb(best, kept).theta.ravel())
        spread = np.square(np.array(found) - np.mean(found, axis=0)).sum(axis=0) * (PARTS - 1) / PARTS
        return spread * (t.ppf(0.975, PARTS - 1) / norm.ppf(0.975)) ** 2


def _at_least(cov: NDArray[np.float64], variance: NDArray[np.float64]) -> NDArray[np.float64]:
    """The covariance with no variance below these, correlations as they are."""
    own = np.maximum(np.diag(cov), TINY)
    factor = np.sqrt(np.maximum(variance / own, 1.0))
    return cov * np.outer(factor, factor)


def _prior(equations: Equations, table: NDArray[np.float64]) -> NDArray[np.float64]:
    """The precision of every coefficient: none for the constant."""
    weight = np.where(equations.counted, table, 0.0).ravel()
    x = equations.x.reshape(-1, equations.p)
    mean = weight @ x / weight.sum()
    spread = weight @ (x - mean) ** 2 / weight.sum()
    return np.tile(spread / PRIOR_SD**2, equations.q)


def _variance(equations: Equations, table: NDArray[np.float64], theta: NDArray[np.float64]) -> float:
    if equations.family.name != "gaussian":
        return 1.0
    weight = np.where(equations.counted, table, 0.0)
    left = equations.y[..., 0] - (equations.x @ theta.T)[..., 0]
    return float((weight * left**2).sum() / weight.sum())


def _density(equations: Equations, slots: Slots, at: Point) -> NDArray[np.float64]:
    """P(hidden values and response | exact covariates) of every cell; cells outside the model are free."""
    table, theta, variance = at.table, at.theta, at.variance
    shares = _shares(slots, np.where(equations.counted, table, 0.0), slots.sum(table).sum(axis=1))
    q, shape = equations.q, equations.grid.shape
    y, eta = equations.y.reshape(-1, q), (equations.x @ theta.T).reshape(-1, q)
    if equations.family.name == "gaussian":
        chance = np.exp(-((y - eta)[:, 0] ** 2) / (2 * variance)) / np.sqrt(variance)
    else:
        gain = equations.family.gain(y, eta)
        if equations.family.name == "poisson":
            from scipy.special import gammaln

            gain = gain - gammaln(y[:, 0] + 1)
        chance = np.exp(gain)
    inside = shares[slots.exact][:, slots.hidden] * chance.reshape(shape)
    whole = np.maximum(slots.sum(table).sum(axis=1), TINY)[slots.exact][:, None]
    return np.where(equations.counted, inside, table / whole)


def _shares(slots: Slots, table: NDArray[np.float64], sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(hidden covariates | exact ones), shrunk towards that of all records by four records for each."""
    sums = slots.sum(table)
    overall = sums.sum(axis=0) / max(sums.sum(), TINY)
    extra = SHRUNK * slots.shape[1] if slots.shape[0] > 1 else 0.0
    return (sums + extra * overall) / np.maximum(sizes + extra, TINY)[:, None]


def _covariance(
    equations: Equations,
    evidence: Evidence,
    slots: Slots,
    at: Point,
    ridge: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The inverse of the records' information, less the part that the covariates' distribution explains."""
    from scipy.sparse import csr_array

    q, p, width = equations.q, equations.p, equations.grid.shape[1]
    table, theta, variance = at.table, at.theta, at.variance
    post = evidence.posterior(_density(equations, slots, at).ravel())
    n = len(evidence.counts)
    weights = csr_array((post, (evidence.row, evidence.cell)), (n, table.size))
    x = equations.x.reshape(-1, p)
    eta = x @ theta.T
    left = np.where(equations.counted.reshape(-1, 1), equations.y.reshape(-1, q) - equations.family.mean(eta), 0.0)
    columns = (left[:, :, None] * x[:, None, :]).reshape(-1, q * p) / variance
    if equations.family.name == "gaussian":
        spread = np.where(equations.counted.ravel(), left[:, 0] ** 2 / variance - 1, 0.0)
        columns = np.concatenate([columns, spread[:, None]], axis=1)
    scores = np.asarray(weights @ columns)
    share = weights @ csr_array(
        (np.ones(table.size), (np.arange(table.size), np.tile(slots.hidden, equations.grid.shape[0]))),
        (table.size, slots.shape[1]),
    )
    share = share.toarray()
    counts = evidence.counts
    found = (scores * counts[:, None]).T @ scores
    own = slots.exact[evidence.cell[evidence.first] // width]
    for slot in range(slots.shape[0]):
        rows = np.flatnonzero(own == slot)
        if not len(rows):
            continue
        mean = counts[rows] @ share[rows] / counts[rows].sum()
        centred = share[rows] - mean
        inner = (centred * counts[rows, None]).T @ centred
        prior = (SHRUNK * slots.shape[1] if slots.shape[0] > 1 else 1e-6) * (np.diag(mean) - np.outer(mean, mean))
        cross = (scores[rows] * counts[rows, None]).T @ centred
        found -= cross @ np.linalg.pinv(inner + prior, rcond=1e-9, hermitian=True) @ cross.T
    found[np.arange(q * p), np.arange(q * p)] += ridge
    return np.linalg.pinv(found, hermitian=True)[: q * p, : q * p]
