"""What "no more general than necessary" gives away about one class, by simulation.

A class is published although k-anonymity alone would have cut it into parts. Whoever knows that the method cuts where
it may concludes that some part would have broken the requirement on the sensitive column. Among all ways to hand the
class's values out to its people, all equally likely, only those remain in which a part breaks it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noren.methods.mechanism.sight import judged
from noren.models.class_check import ClassModel
from noren.statements import Statement

CLEARLY = 4.0
"""Standard errors by which a belief must rise before it counts as a gain."""


@dataclass(frozen=True)
class Cut:
    """Classes and the parts that k alone would have cut them into; members stand class by class."""

    of: NDArray[np.int64]
    """The class of every member, ascending."""
    part: NDArray[np.int64]
    """The part of every member."""
    values: NDArray[np.int64]
    """The values of every class, in any order inside it."""
    d: int

    @property
    def classes(self) -> int:
        return int(self.of.max(initial=-1)) + 1

    @property
    def parts(self) -> int:
        return int(self.part.max(initial=-1)) + 1

    @property
    def owner(self) -> NDArray[np.int64]:
        """The class of every part."""
        out = np.zeros(self.parts, np.int64)
        out[self.part] = self.of
        return out

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Members of every part."""
        return np.bincount(self.part, minlength=self.parts)

    @property
    def shares(self) -> NDArray[np.float64]:
        """(classes, values): what the published class says about each of its members."""
        counts = np.bincount(self.of * self.d + self.values, minlength=self.classes * self.d)
        counts = counts.reshape(self.classes, self.d).astype(float)
        return np.asarray(counts / np.maximum(1, counts.sum(axis=1, keepdims=True)))


@dataclass(frozen=True)
class Learned:
    """What is believed about the members of every part once minimality is taken into account."""

    top: NDArray[np.int64]
    """The value believed most, chosen by one half of the draws."""
    belief: NDArray[np.float64]
    """The belief in it, by the other half: the choice does not flatter it."""
    error: NDArray[np.float64]
    before: NDArray[np.float64]
    """The largest share of a value in the published class."""
    posterior: NDArray[np.float64]
    """(parts, values), by all draws."""
    violations: NDArray[np.int64]
    """Draws of its class in which some part broke the requirement."""

    @property
    def settled(self) -> NDArray[np.bool_]:
        """Parts of classes for which enough draws are left to say something."""
        return self.violations > 1

    @property
    def gains(self) -> NDArray[np.bool_]:
        return np.asarray(self.settled & (self.belief - self.before > CLEARLY * self.error + 1e-9))


def learn(
    cut: Cut,
    models: Sequence[ClassModel],
    column: Statement,
    overall: NDArray[np.float64],
    draws: int,
    seed: int = 0,
) -> Learned:
    """Hand out values at random, keep the draws in which a class could not have been cut."""
    rng = np.random.default_rng(seed)  # simulation only: nothing of it is published
    parts, d, owner, sizes = cut.parts, cut.d, cut.owner, cut.sizes
    sums = np.zeros((2, parts, d))
    squares = np.zeros((parts, d))
    kept = np.zeros((2, cut.classes), np.int64)
    for number in range(draws):
        half = number % 2
        shuffled = cut.values[np.argsort(cut.of + rng.random(len(cut.of)), kind="stable")]
        counts = np.bincount(cut.part * d + shuffled, minlength=parts * d).reshape(parts, d)
        fine = judged(counts, models, column, overall)
        broken = np.asarray(np.bincount(owner, ~fine, minlength=cut.classes) > 0)
        kept[half] += broken
        share = np.where(broken[owner, None], counts / sizes[:, None], 0.0)
        sums[half] += share
        if half:
            squares += share**2
    seen = kept[:, owner]
    halves = sums / np.maximum(1, seen)[:, :, None]
    top = halves[0].argmax(axis=1)
    at = (np.arange(parts), top)
    shares = cut.shares[owner]
    settled = np.asarray(seen.min(axis=0) > 1)
    spread = squares[at] / np.maximum(1, seen[1]) - halves[1][at] ** 2
    error = np.sqrt(np.maximum(spread, 0) / np.maximum(1, seen[1]))
    everything = sums.sum(axis=0) / np.maximum(1, seen.sum(axis=0))[:, None]
    return Learned(
        top=np.where(settled, top, shares.argmax(axis=1)),
        belief=np.where(settled, halves[1][at], shares.max(axis=1)),
        error=np.where(settled, error, 0.0),
        before=shares.max(axis=1),
        posterior=np.where(settled[:, None], everything, shares),
        violations=np.where(settled, seen.sum(axis=0), 0),
    )
