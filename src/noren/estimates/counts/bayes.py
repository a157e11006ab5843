"""Equation 26 of the sensitive-QID paper, whose thousands of small steps are followed in far fewer.

EM steps x <- x a(x) are Euler steps of length 1 along dz/dt = log a(exp z), z = log x. The Jacobian of the right side
is minus a stochastic matrix similar to a positive semidefinite one, so its eigenvalues lie in [-1, 0] at every table.
A stabilised Runge-Kutta-Chebyshev scheme of second order then covers a time of about 0.65 s^2 in s evaluations and
stays on the path, which an extrapolation towards the limit (`ascent`) would leave: what stops early must stop where
plain steps would.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, prod, sqrt

import numpy as np
from numpy.typing import NDArray

from noren.estimates.counts.frame import Frame
from noren.estimates.counts.tuples import Fit, Floats, Progress

MAX_BAYES_STEPS = 20_000
PLAIN = 100  # steps before the first leap: the beginning of the path bends most
CLOSE = 3e-5  # share of all records by which one leap may leave the path
DAMPING = 2 / 13
SMALLEST = 1e-300


def bayes(frame: Frame, *, progress: Progress | None = None, eps: float = 1.0) -> Fit:
    """Equations 26 and 27: apply Bayes' rule to inclusion counts until no cell changes by eps, then divide once.

    The change is that of equation 26, before the division. That takes thousands of steps and more, so their path is
    followed in leaps: `iterations` counts applications of the equation, `plain_steps` the steps they stand for.
    """
    w = frame.inclusions
    divisor = float(prod(axis.design.eta for axis in frame.decoys))
    inclusion = inclusion_of(frame)
    found = follow(lambda x: bayes_step(inclusion, x, w), w, eps, MAX_BAYES_STEPS, progress)
    facts = {
        "stopping": f"change below {eps:g} before the division by {divisor:g}",
        "plain_steps": round(found.steps),
        "last_change": found.change,
        "converged": found.change < eps,
    }
    return Fit(found.table / divisor, found.evaluations, facts)


Inclusion = Sequence[tuple[float, float | NDArray[np.float64]]]
"""Of every drawn axis P(u in R | v), as `Inversion.inclusion` gives it."""


def inclusion_of(frame: Frame) -> Inclusion:
    """Return the probabilities that equation 26 needs, axis by axis."""
    return [axis.design.inversion.inclusion for axis in frame.decoys]


def bayes_step(inclusion: Inclusion, x: NDArray[np.float64], w: NDArray[np.float64]) -> NDArray[np.float64]:
    """Apply equation 26 once, with delta as a Kronecker product."""
    expected = delta(inclusion, x)
    ratio = np.divide(w, expected, out=np.zeros_like(w), where=expected > 0)
    return x * delta(inclusion, ratio, back=True)


def delta(inclusion: Inclusion, x: NDArray[np.float64], *, back: bool = False) -> NDArray[np.float64]:
    """Return the expected inclusion counts of x, or with `back` the transpose."""
    for j, (always, more) in enumerate(inclusion, start=1):
        if isinstance(more, float):
            x = always * x.sum(axis=j, keepdims=True) + more * x
        else:
            x = np.moveaxis(np.tensordot(more if back else more.T, x, axes=(1, j)), 0, j)
    return x


@dataclass(frozen=True)
class Place:
    """A table on the path, the number of plain steps to it, and the work so far."""

    table: Floats
    steps: float
    evaluations: int
    change: float
    """By how much the last plain step moved a cell at most."""


def follow(
    step: Callable[[Floats], Floats], x: Floats, eps: float, most: int, progress: Progress | None = None
) -> Place:
    """Return the first table on the path of plain steps from x at which no cell changes by eps; uses at most `most`
    evaluations.

    Empty cells stay empty.
    """
    path = _Path(step, x, progress)
    z, k = np.log(x[path.live]), 0.0
    f, change = path.slope(z)
    while k < PLAIN and change >= eps:
        z, k = z + f, k + 1
        f, change = path.slope(z)
    h = k / 4
    while change >= eps and path.evaluations < most:
        reached, slope, after, error = path.leap(z, f, h)
        if error > CLOSE:
            h *= max(0.1, 0.8 * (CLOSE / error) ** (1 / 3))
            continue
        if after < eps:  # somewhere on this leap: halve until it is known to a step
            low, high, middle = 0.0, 1.0, (reached, slope, after)
            while (high - low) * h > 0.5:
                t = (low + high) / 2
                here = _between(z, f, reached, slope, h, t)
                found = path.slope(here)
                if found[1] < eps:
                    high, middle = t, (here, *found)
                else:
                    low = t
            k += high * h
            z, f, change = middle
            break
        z, f, change, k = reached, slope, after, k + h
        h *= min(2.0, 0.8 * (CLOSE / max(error, 1e-3 * CLOSE)) ** (1 / 3))
    return Place(path.table(z + f), k + 1, path.evaluations, change)


class _Path:
    """The right side of the differential equation on the nonempty cells, and the number of its evaluations."""

    def __init__(self, step: Callable[[Floats], Floats], x: Floats, progress: Progress | None) -> None:
        self.step, self.live, self.shape, self.progress, self.evaluations = step, x > 0, x.shape, progress, 0

    def table(self, z: Floats) -> Floats:
        out = np.zeros(self.shape)
        out[self.live] = np.exp(z)
        return out

    def slope(self, z: Floats) -> tuple[Floats, float]:
        """Return log a at z, and the largest change of a cell by a plain step."""
        self.evaluations += 1
        x = self.table(z)
        following = self.step(x)
        change = float(np.abs(following - x).max(initial=0.0))
        if self.progress is not None:
            self.progress(self.evaluations, change)
        return np.log(np.maximum(following[self.live], SMALLEST)) - np.maximum(z, np.log(SMALLEST)), change

    def leap(self, z: Floats, f: Floats, h: float) -> tuple[Floats, Floats, float, float]:
        """Return the point of the path after h, its slope and change, and the share of records that may be
        misplaced."""
        first, stages = _stages(max(2, ceil(sqrt(1 + 1.54 * h))))
        before, now = z, z + first * h * f
        for own, one, two, slope, start in stages:
            g = self.slope(now)[0]
            before, now = now, own * z + one * now + two * before + h * (slope * g + start * f)
        after, change = self.slope(now)
        error = 0.8 * (z - now) + 0.4 * h * (f + after)
        weight = np.exp(now)
        return now, after, change, float((weight * np.abs(error)).sum() / weight.sum())


def _stages(s: int) -> tuple[float, list[tuple[float, float, float, float, float]]]:
    """Return the coefficients of the scheme with s stages (Chebyshev polynomials and their derivatives, slightly
    damped)."""
    at = 1 + DAMPING / s**2
    t, d, dd = [1.0, at], [0.0, 1.0], [0.0, 0.0]
    for j in range(2, s + 1):
        t.append(2 * at * t[j - 1] - t[j - 2])
        d.append(2 * t[j - 1] + 2 * at * d[j - 1] - d[j - 2])
        dd.append(4 * d[j - 1] + 2 * at * dd[j - 1] - dd[j - 2])
    rate = d[s] / dd[s]
    b = [dd[max(j, 2)] / d[max(j, 2)] ** 2 for j in range(s + 1)]
    out = []
    for j in range(2, s + 1):
        one, two, slope = 2 * b[j] * at / b[j - 1], -b[j] / b[j - 2], 2 * b[j] * rate / b[j - 1]
        out.append((1 - one - two, one, two, slope, -(1 - b[j - 1] * t[j - 1]) * slope))
    return b[1] * rate, out


def _between(z: Floats, f: Floats, last: Floats, slope: Floats, h: float, t: float) -> Floats:
    """Interpolate a point of the leap by the cubic with the slopes of both ends."""
    start = (1 + 2 * t) * (1 - t) ** 2 * z + t * (1 - t) ** 2 * h * f
    return np.asarray(start + t * t * (3 - 2 * t) * last + t * t * (t - 1) * h * slope)
