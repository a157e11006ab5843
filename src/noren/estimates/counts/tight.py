"""What tight classes say: a class publishes the least general value that covers it, so the ends of its interval and
every member of its set occur in it.

Coarsening at random, on which `likelihood` rests, is wrong there. Of a class of n records under a general value S the
expected number of records with value v is

    E[N_v | N_r >= 1 for every r that certainly occurs, sum of all N = n],      N_v ~ Poisson(mu q_v) for v in S

with mu such that the expectations add up to n. That is the multinomial's conditional mean but for a term of order 1/n
(a saddle point), at no cost for sets of any size; where as many values occur as there are records, it is exact.

What q is decides everything, and no release tells it. Classes are formed of near records: one that holds two values
lies where they meet and has about as many of the one as of the other, whatever their shares among all; one that holds
many values, or is large, is nearly a sample of all. So q is between even and the estimated shares p, by how many values
m the class covers:

    q_v ~ u_v^a p_v^(1 - a),      a = min(1 / m, n^(-1/3)),      u even over S

p is what the same formula says of all classes with q = u. Going on, with what comes out as the next p, makes the
estimates worse (measured): the more shares are followed, the more they are exaggerated.

That is right for columns of people and wrong for others: for some, classes are even whatever the shares are, for a few
coarsening at random is less wrong. How much each of the three laws counts is judged by `class_laws`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noren.estimates.counts.ascent import ascend

ROUNDS = 60
"""Newton steps at most; a few suffice."""
NEAR = 1e-9
LEAST = 1e-12
"""Share of a value that no class seems to have."""
STILL = 0.01
"""Records: coarsening at random has found its shares when no step moves more."""
MOST_STEPS = 300


@dataclass(frozen=True)
class TightClasses:
    """Classes of one size under one general value, and the segments that they may have records in."""

    sizes: NDArray[np.float64]
    """Records of one such class."""
    asked: NDArray[np.float64]
    """Rows of all such classes that are asked about."""
    bounds: NDArray[np.int64]
    segment: NDArray[np.int64]
    required: NDArray[np.bool_]

    @property
    def owner(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self.sizes)), np.diff(self.bounds))

    def sums(self, parts: NDArray[np.float64]) -> NDArray[np.float64]:
        """The parts of every class added up."""
        return np.asarray(np.add.reduceat(parts, self.bounds[:-1])) if len(parts) else np.zeros(0)

    def shares(self, even: NDArray[np.float64], known: NDArray[np.float64] | None) -> NDArray[np.float64]:
        """Which share of a class each of its segments is expected to have, given what is expected of all."""
        owner = self.owner
        weight = even[self.segment] / self.sums(even[self.segment])[owner]
        if known is not None:
            power = np.minimum(1 / self.sums(np.ones(len(self.segment))), self.sizes ** (-1 / 3))[owner]
            part = np.maximum(known[self.segment], LEAST)
            weight = weight**power * (part / self.sums(part)[owner]) ** (1.0 - power)
            weight /= self.sums(weight)[owner]
        expected = self._expected(weight, owner)
        return np.asarray(expected / self.sums(expected)[owner])

    def _expected(self, weight: NDArray[np.float64], owner: NDArray[np.int64]) -> NDArray[np.float64]:
        """Expected records of every segment, up to a factor for each class."""
        certain = self.sums(self.required.astype(np.float64))
        mean = np.maximum(self.sizes - certain / 2, 1e-6)
        for _ in range(ROUNDS):
            found, slope = truncated(mean[owner] * weight, self.required)
            step = (self.sums(found) - self.sizes) / np.maximum(self.sums(slope * weight), LEAST)
            following = np.maximum(mean - step, mean * 1e-3)
            moved = float(np.abs(following - mean).max(initial=0.0))
            mean = following
            if moved <= NEAR * float(self.sizes.max(initial=1.0)):
                break
        return truncated(mean[owner] * weight, self.required)[0]

    def at_random(self, even: NDArray[np.float64]) -> NDArray[np.float64]:
        """The same if classes were coarsened at random and only say which values are possible: most probable shares."""
        owner = self.owner

        def step(table: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
            sums = np.maximum(self.sums(table[self.segment]), 1e-300)
            part = table[self.segment] / sums[owner]
            return self.total(part, len(even)), float((self.asked * np.log(sums)).sum())

        start = even * (self.asked.sum() / even.sum())
        found = ascend(step, start, STILL, MOST_STEPS)[0][self.segment]
        return np.asarray(found / np.maximum(self.sums(found), 1e-300)[owner])

    def total(self, shares: NDArray[np.float64], segments: int) -> NDArray[np.float64]:
        """How many of the rows asked about are expected in every segment."""
        return np.bincount(self.segment, shares * self.asked[self.owner], minlength=segments).astype(np.float64)


def truncated(mean: NDArray[np.float64], required: NDArray[np.bool_]) -> tuple[NDArray, NDArray]:
    """The mean of a Poisson number that is at least 1 where that is required, and its derivative."""
    some = np.maximum(-np.expm1(-mean), 1e-300)
    small = mean < 1e-4
    value = np.where(small, 1 + mean / 2, mean / some)
    slope = np.where(small, 0.5 + mean / 6, (some - mean * np.exp(-mean)) / some**2)
    return np.where(required, value, mean), np.where(required, slope, 1.0)
