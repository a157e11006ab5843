"""Corrected score equations: sum over records and values of weight times (y - mean) x = 0, solved by damped Newton.

The weights are unbiased scores of the hidden cells, so the equations have the expectation of those of the true table
and the estimate is consistent; its errors follow from the records' own sums (the sandwich). Weights may be negative,
so a solution need not exist in a small release: what the equations rest on is measured, and too little is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from noren.estimates.statistics.families import Family
from noren.estimates.statistics.grid import ModelGrid

STEPS = 60
TOLERANCE = 1e-8
FARTHEST = 25.0
"""A linear predictor beyond this on average is on its way to infinity."""
SIGNAL = 4.0
"""The least information of a model, in standard errors of itself, on which normal intervals can rest."""


@dataclass(frozen=True, eq=False)
class Equations:
    """A model on a grid: columns x (E, H, p), responses y (E, H, q), and which cells take part."""

    grid: ModelGrid
    family: Family
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    counted: NDArray[np.bool_]

    @property
    def p(self) -> int:
        return int(self.x.shape[-1])

    @property
    def q(self) -> int:
        return int(self.y.shape[-1])


@dataclass(frozen=True, eq=False)
class Solution:
    """Coefficients (q, p), the matrix of the equations at them, and whether they were reached."""

    theta: NDArray[np.float64]
    bread: NDArray[np.float64]
    converged: bool
    steps: int
    table: NDArray[np.float64]
    """What the equations were solved on."""


def solve(
    equations: Equations,
    table: NDArray[np.float64],
    start: NDArray[np.float64] | None = None,
    *,
    steps: int = STEPS,
    ridge: NDArray[np.float64] | None = None,
) -> Solution:
    """Newton's method on weighted cells, damped where the matrix is not positive or a step gains nothing."""
    used = np.flatnonzero((table != 0).ravel() & equations.counted.ravel())
    x = equations.x.reshape(-1, equations.p)[used]
    y = equations.y.reshape(-1, equations.q)[used]
    t, q, p = table.ravel()[used], equations.q, equations.p
    family = equations.family
    penalty = np.zeros(q * p) if ridge is None else ridge
    theta = np.zeros((q, p)) if start is None else start.copy()
    damping, done = 0.0, False

    def gain(at: NDArray[np.float64]) -> float:
        with np.errstate(over="ignore", invalid="ignore"):  # a step too far is no gain
            return float(t @ family.gain(y, x @ at.T) - penalty @ at.ravel() ** 2 / 2)

    now, taken = gain(theta), 0
    bread = np.eye(q * p)
    for taken in range(1, steps + 1):  # noqa: B007  told at the end
        mean = family.mean(x @ theta.T)
        slope = ((y - mean) * t[:, None]).T @ x - penalty.reshape(q, p) * theta
        bread = information(x, t, family.slope(mean)) + np.diag(penalty)
        scale = np.sqrt(np.abs(np.diag(bread)) + 1e-300)
        scaled = bread / np.outer(scale, scale)
        least = float(np.linalg.eigvalsh(scaled)[0])
        if least <= 1e-9:
            damping = max(damping, 1e-3 - least)
        move = np.linalg.solve(scaled + damping * np.eye(q * p), slope.ravel() / scale) / scale
        decrement = float(np.abs(slope.ravel() @ move))
        if least > 1e-9 and decrement < TOLERANCE * max(1.0, float(np.abs(t).sum()) ** 0.5):
            theta, done = theta + move.reshape(q, p), True
            break
        factor = 1.0
        while factor > 1e-4 and not gain(theta + factor * move.reshape(q, p)) > now:
            factor /= 2
        if factor <= 1e-4:
            damping = max(10 * damping, 1e-3)
            if damping > 1e6:
                break
            continue
        damping /= 4
        damping = damping if damping > 1e-6 else 0.0
        theta = theta + factor * move.reshape(q, p)
        now = gain(theta)
        with np.errstate(over="ignore"):  # too large for a number is farther than any bound
            reach = float(np.sqrt(np.mean((x @ theta.T) ** 2)))
        if reach > FARTHEST and family.name != "gaussian":
            break
    return Solution(theta, bread, done, taken, table)


def information(x: NDArray[np.float64], t: NDArray[np.float64], slope: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum of t times (slope kron x x')."""
    q = slope.shape[1]
    blocks = [[x.T @ (x * (t * slope[:, a, b])[:, None]) for b in range(q)] for a in range(q)]
    return np.block(blocks)


@dataclass(frozen=True, eq=False)
class Sandwich:
    """The covariance of the coefficients, and how firmly the equations stand."""

    cov: NDArray[np.float64]
    signal: float
    """Information in the direction that has least, in standard errors of itself."""
    direction: NDArray[np.float64]


class Blended(Protocol):
    """A second source of the model's table."""

    @property
    def share(self) -> NDArray[np.float64]: ...

    def meat(
        self, own: NDArray[np.float64], left: NDArray[np.float64], x: NDArray[np.float64]
    ) -> NDArray[np.float64]: ...


def sandwich(equations: Equations, found: Solution, blend: Blended | None = None) -> Sandwich:
    """A^-1 B A^-1 with B from every record's own sum, and the noise of A in its weakest direction.

    Both are multiplied by how many records a person has at most: their sums need not be independent.
    """
    grid, family, q, p = equations.grid, equations.family, equations.q, equations.p
    slots, width = grid.shape
    eta = equations.x @ found.theta.T
    mean = family.mean(eta.reshape(-1, q))
    counted = equations.counted[..., None]
    left = np.where(counted, equations.y - mean.reshape(slots, width, q), 0.0)
    scale = np.sqrt(np.abs(np.diag(found.bread)) + 1e-300)
    _, vectors = np.linalg.eigh(found.bread / np.outer(scale, scale))
    direction = vectors[:, 0] / scale
    along = (equations.x @ direction.reshape(q, p).T).reshape(-1, q)
    bend = np.einsum("ga,gab,gb->g", along, family.slope(mean), along).reshape(slots, width)
    bend = np.where(equations.counted, bend, 0.0)
    meat, noise, level, n = np.zeros((q * p, q * p)), 0.0, 0.0, grid.records.n
    for rows in grid.chunks(q * p):
        weights, slot = grid.weights(grid.scores, rows), grid.slot[rows]
        weights = weights if blend is None else weights * (1 - blend.share[slot])
        counts, squares = grid.counts[rows], grid.squares[rows]
        own = np.einsum("bh,bhq,bhp->bqp", weights, left[slot], equations.x[slot], optimize=True).reshape(-1, q * p)
        meat += (own * squares[:, None]).T @ own
        one = (weights * bend[slot]).sum(axis=1)
        level, noise = level + float(counts @ one), noise + float(squares @ one**2)
    back = np.linalg.pinv(found.bread, hermitian=True)
    if blend is not None:
        meat = meat + blend.meat(grid.table, left, np.broadcast_to(equations.x, (slots, width, p)))
        level, noise = float((found.table * bend).sum()), noise + float((blend.share * grid.table * bend**2).sum())
    several = grid.records.inflation
    error = np.sqrt(several * max(noise - level**2 / max(n, 1.0), 1e-300))
    return Sandwich(back @ meat @ back * several * n / max(n - q * p, 1.0), level / error, direction)
