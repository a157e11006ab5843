"""Sets drawn so that nobody who knows public shares believes a value above a bound.

Let pi be public shares of d values and g the bound, at least the largest share. Every set holds l = ceil(1/g) values.
In its most common ones, by pi, somebody with the prior pi believes with g each, in its rarest with 1 - (l-1) g: the
posterior of a set with as few members as the bound permits, which by Blackwell's theorem loses least. With g = 1/l all
members are thought equally likely, and a set has probability q(R) with inclusion l pi(v): sampling of fixed size with
unequal probabilities. Of all q that fit pi the one here is the product form of conditional Poisson sampling (Chen,
Dempster and Liu, 1994), q(R) proportional to the product over R of pi(v)^a exp(lambda(v) times the posterior of v in
R), lambda by Newton steps on sums over sets, so that a domain of any size is served, and a the best of a few exponents.
"""

# ruff: noqa: E741  l is the papers' letter

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import ceil, inf
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from noren.designs.semantic.compatibility import Compatibility, Ranks
from noren.designs.semantic.law import CertainSets, Law, RowKernel, units_of

MOST_STEPS = 200
"""Newton steps; far fewer are needed where the shares can be met."""
EXACTNESS = 1e-10
"""To which shares are met, relative to each."""
POWERS = (1.0, 0.5, 1.5, 2.0)
"""Exponents of the shares in the probability of a set that are tried."""
NEAR = 1e-6
"""A share that comes nearer to the bound leaves nothing to learn about its value."""
BOUNDS_TRIED = 16
"""Beliefs up to the bound that are tried: at its edge of what shares permit, a little less belief loses less."""


class Sums(NamedTuple):
    """Sums over all sets of the product of their members' weights, with values in order of their shares."""

    heavy: NDArray[np.float64]
    """The weight of a value that is not the rarest of its set."""
    light: NDArray[np.float64]
    """The weight of one that is."""
    before: NDArray[np.float64]
    """[j, k]: all ways to take j of the first k as heavy."""
    after: NDArray[np.float64]
    """[j, k]: all ways to take j heavy ones and the rarest from number k on."""

    @classmethod
    def of(cls, heavy: NDArray[np.float64], light: NDArray[np.float64], l: int) -> Sums:
        d = len(heavy)
        before, after = np.zeros((l, d + 1)), np.zeros((l, d + 2))
        before[0] = 1.0
        after[0, :d] = np.cumsum(light[::-1])[::-1]
        for j in range(1, l):
            before[j, 1:] = np.cumsum(heavy * before[j - 1, :-1])
            after[j, :d] = np.cumsum((heavy * after[j - 1, 1 : d + 1])[::-1])[::-1]
        return cls(heavy, light, before, after)

    @property
    def size(self) -> int:
        """Return the number of values of every set."""
        return len(self.before)

    @property
    def total(self) -> float:
        return float(self.after[self.size - 1, 0])

    def splits(self) -> NDArray[np.float64]:
        """Return [k, i]: the weight of the sets in which k is heavy and preceded by i heavy values."""
        l, d = self.size, len(self.heavy)
        return np.stack(
            [self.heavy * self.before[i, :d] * self.after[l - 2 - i, 1 : d + 1] for i in range(l - 1)], axis=1
        )

    def rarest(self) -> NDArray[np.float64]:
        """Return the weight of the sets in which each value is the rarest."""
        return np.asarray(self.light * self.before[self.size - 1, :-1])

    def pairs(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return [k, m], k < m: the weight of the sets that contain both as heavy values, and of those in which m is
        the rarest."""
        l, d = self.size, len(self.heavy)
        both, rarest = np.zeros((d, d)), np.zeros((d, d))
        ways = np.zeros((d, l))  # [k, s]: all ways to take s heavy ones so far, k among them
        for m in range(d):
            for s in range(1, l - 1):
                both[:m, m] += ways[:m, s] * (self.heavy[m] * self.after[l - 2 - s, m + 1])
            rarest[:m, m] = ways[:m, l - 1] * self.light[m]
            ways[:m, 1:] += self.heavy[m] * ways[:m, :-1]
            ways[m, 1:] = self.heavy[m] * self.before[: l - 1, m]
        return both, rarest


class Fit(NamedTuple):
    """The sums that match the shares, and the asymptotic squared error of estimated shares for one record."""

    power: float
    multipliers: NDArray[np.float64]
    error: float


def weigh(base: NDArray[np.float64], most: float, l: int, multipliers: NDArray[np.float64]) -> Sums:
    """Compute the sums over sets with the weights of the multipliers; shares are in order, raised to a power."""
    heavy, light = (np.log(base) + belief * multipliers for belief in (most, 1 - (l - 1) * most))
    return Sums.of(np.exp(heavy - heavy.max()), np.exp(light - light.max()), l)


def second_beliefs(sums: Sums, most: float) -> NDArray[np.float64]:
    """C = sum over sets of q p p', where p are the beliefs in the members of a set: its rows sum to mean beliefs."""
    least = 1 - (sums.size - 1) * most
    both, rarest = sums.pairs()
    upper = (most * most * both + most * least * rarest) / sums.total
    own = (most * most * sums.splits().sum(axis=1) + least * least * sums.rarest()) / sums.total
    return np.asarray(upper + upper.T + np.diag(own))


def fit(shares: NDArray[np.float64], most: float, l: int, power: float) -> Fit | None:
    """Find multipliers under which mean beliefs equal the shares, by Newton's method on a convex function; None if
    there are none. Values are ordered by share, the most frequent first."""
    multipliers = np.zeros(len(shares))
    for _ in range(MOST_STEPS):
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            second = second_beliefs(weigh(shares**power, most, l, multipliers), most)
        if not np.isfinite(second).all():
            return None
        mean = second.sum(axis=1)
        try:
            inverse = np.linalg.inv(second)
        except np.linalg.LinAlgError:
            return None
        if (np.abs(mean - shares) <= EXACTNESS * shares).all():
            error = float(shares**2 @ np.diag(inverse) - (shares**2).sum())
            return Fit(power, multipliers, error) if error > 0 else None
        step = inverse @ (mean - shares)
        multipliers = multipliers - step * min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-300))
    return None


class InformedDesign(CertainSets):
    """The design and likelihood of sets that limit the belief of somebody who knows public shares.

    Guarantee: every set holds eta values, the true one among them, and somebody who believed them by `prior` believes
    none of them with more than `most` afterwards, or 1 - (eta-1) most for its rarest.
    """

    name: Literal["informed"] = "informed"
    d: int = Field(ge=2, description="Number of values in the attribute's domain.")
    eta: int = Field(ge=2, description="Number of values in each published set.")
    most: float = Field(gt=0, lt=1, description="Belief in every member of a set except the rarest.")
    prior: tuple[float, ...] = Field(description="Public shares of the values, above 0, which sum to 1.")
    power: float = Field(gt=0, le=4, description="Exponent of the prior in the probability of a set.")
    multipliers: tuple[float, ...] = Field(
        description="Lambda: a set has a probability in proportion to the product over its members of the prior to "
        "that power times exp(lambda times the belief in the member)."
    )

    @model_validator(mode="after")
    def _fits(self) -> InformedDesign:
        if not self.eta < self.d:
            raise ValueError(f"eta={self.eta} must be below the {self.d} values of the domain")
        if len(self.prior) != self.d or len(self.multipliers) != self.d:
            raise ValueError(f"prior and multipliers need {self.d} numbers each")
        if not all(0 < share < 1 for share in self.prior) or abs(sum(self.prior) - 1) > 1e-9:
            raise ValueError("the prior must consist of positive shares that sum to 1")
        if not all(-inf < one < inf for one in self.multipliers):
            raise ValueError("multipliers are finite")
        if not 1 / self.eta - 1e-12 <= self.most < 1 / (self.eta - 1):
            raise ValueError(f"in sets of {self.eta} values, the beliefs cannot all but one be {self.most:g}")
        with np.errstate(all="ignore"):
            chances = InformedLaw(self).chances.sum(axis=1)
        if not (np.isfinite(chances).all() and (chances > 0).all()):
            raise ValueError("with these multipliers some value is in no set")
        return self

    @classmethod
    def within(
        cls, shares: Sequence[float] | NDArray[np.float64], most: float, least: int = 2
    ) -> InformedDesign | None:
        """Return the design of smallest asymptotic error under which no belief exceeds `most`; None if there is none.

        Sets hold `least` values or more; those that must hold more than the bound asks for have members thought equally
        likely.
        """
        prior = np.asarray(shares, np.float64) / np.sum(shares)
        smallest = ceil(1 / most - 1e-9)
        l = max(least, smallest)
        if not l < len(prior) or prior.min() <= 0:
            return None
        order = np.argsort(-prior, kind="stable")
        top, low = float(prior.max()) * (1 + NEAR), max(1 / l, float(prior.max()))
        tried = [1 / l] if l > smallest else [max(1 / l, most), *np.linspace(most, low, BOUNDS_TRIED)[1:].tolist()]
        best: tuple[float, Fit] | None = None
        for belief in dict.fromkeys(one for one in tried if top < one <= most * (1 + NEAR)):
            fits = [found for power in POWERS if (found := fit(prior[order], belief, l, power)) is not None]
            found = min(fits, key=lambda one: one.error, default=None)
            if found is not None and (best is None or found.error < best[1].error):
                best = belief, found
            elif best is not None:
                break  # the error has one valley
        if best is None:
            return None
        multipliers = np.empty(len(prior))
        multipliers[order] = best[1].multipliers
        made = {"d": len(prior), "eta": l, "most": best[0], "prior": tuple(prior.tolist()), "power": best[1].power}
        return cls(**made, multipliers=tuple(multipliers.tolist()))

    # ------------------------------------------------------------------ what every design answers

    @property
    def title(self) -> str:
        return f"{self.name} ({self.digest})"

    @property
    def threshold(self) -> None:
        """Return no threshold: all values are compatible."""
        return None

    @property
    def law(self) -> InformedLaw:
        law = super().law
        assert isinstance(law, InformedLaw)
        return law

    def make_law(self) -> InformedLaw:
        return InformedLaw(self)

    def worst_belief(self) -> float:
        """Return the largest belief under a uniform prior."""
        return self.worst_under(np.full(self.d, 1 / self.d))

    def worst_under(self, prior: NDArray[np.float64]) -> float:
        """Return the largest belief over all sets under this prior."""
        return self.law.worst_posterior(prior)

    def error(self) -> float:
        """Return the expected squared error of the best estimate of shares times the number of records, if the prior is
        right."""
        law, shares = self.law, np.sort(self.prior)[::-1]
        inverse = np.linalg.inv(second_beliefs(law.sums, self.most))
        return float(shares**2 @ np.diag(inverse) - (shares**2).sum())


class InformedLaw(Law):
    """The likelihood P(R | v) = q(R) p_R(v) / sum, where p_R(v) is the belief in v after R under the prior."""

    def __init__(self, design: InformedDesign) -> None:
        super().__init__(Compatibility(design.d, 1.0, Ranks(step=1)), design.eta)
        prior = np.array(design.prior)
        self.order = np.argsort(-prior, kind="stable")
        self.rank = np.empty(self.F, np.int64)
        self.rank[self.order] = np.arange(self.F)
        self.most, self.least = design.most, max(0.0, 1 - (design.eta - 1) * design.most)
        base = prior[self.order] ** design.power
        self.sums = weigh(base, design.most, design.eta, np.array(design.multipliers)[self.order])

    @cached_property
    def chances(self) -> NDArray[np.float64]:
        """Return [rank, i]: for a true value, the probability that it is heavy with i heavy values before it; last,
        that it is light. Unnormalised: belief times the weight of the sets."""
        return np.hstack([self.most * self.sums.splits(), self.least * self.sums.rarest()[:, None]])

    def likelihood(self, sets: NDArray) -> NDArray[np.float64]:
        ranks = self.rank[sets]
        rarest = ranks == ranks.max(axis=1, keepdims=True)
        weight = np.where(rarest, self.sums.light[ranks], self.sums.heavy[ranks]).prod(axis=1)
        belief = np.where(rarest, self.least, self.most)
        return np.asarray(belief * weight[:, None] / self.chances.sum(axis=1)[ranks])

    def inclusion(self) -> NDArray[np.float64]:
        both, rarest = self.sums.pairs()
        joint = self.most * (both + both.T + rarest) + self.least * rarest.T
        out = joint / self.chances.sum(axis=1)[:, None]
        np.fill_diagonal(out, 1.0)
        return np.asarray(out[np.ix_(self.rank, self.rank)])

    def words(self) -> int:
        return 2 * self.l

    def kernel(self) -> RowKernel:
        """Draw the position of the true value in its set, then one member after the other, by running sums rounded to
        53 bits. Memoised sets depend on the order of the words here: [position, members before, members after]."""
        l = self.l
        places = np.cumsum(self.chances, axis=1)

        def draw(words: NDArray, codes: NDArray, out: NDArray) -> None:
            unit = units_of(words)
            own = self.rank[codes]
            place = (unit[:, :1] * places[own, -1:] >= places[own, :-1]).sum(axis=1)
            found = np.empty((len(codes), l), np.int64)
            found[:, 0] = own
            for i in np.unique(place).tolist():
                rows, left = np.flatnonzero(place == i), i if i < l - 1 else l - 1
                part = found[rows]
                self._fill_before(unit[rows, 1 : left + 1], own[rows], part[:, 1 : left + 1])
                self._fill_after(unit[rows, left + 1 :], own[rows] + 1, part[:, left + 1 :])
                found[rows] = part
            out[:] = np.sort(self.order[found], axis=1)

        return draw

    def _fill_before(self, unit: NDArray, end: NDArray[np.int64], out: NDArray[np.int64]) -> None:
        """Draw the heavy values before these ranks, the last of them first."""
        for step in range(out.shape[1]):
            ways = self.sums.before[out.shape[1] - step]
            found = np.searchsorted(ways, unit[:, step] * ways[end], side="right") - 1
            end = out[:, step] = np.minimum(found, end - 1)

    def _fill_after(self, unit: NDArray, begin: NDArray[np.int64], out: NDArray[np.int64]) -> None:
        """Draw the heavy values from these ranks on, the first of them first, and then the rarest."""
        for step in range(out.shape[1]):
            ways = self.sums.after[out.shape[1] - 1 - step]
            found = self.F + 1 - np.searchsorted(ways[::-1], unit[:, step] * ways[begin], side="right")
            out[:, step] = np.maximum(found, begin)
            begin = out[:, step] + 1

    def worst_posterior(self, prior: NDArray[np.float64]) -> float:
        """Return the largest belief: for each rarest value, the likeliest heavy one with the least likely others."""
        own = prior[self.order] / self.chances.sum(axis=1)
        heavy, light, worst = self.most * own, self.least * own, 0.0
        for u in range(self.l - 1, self.F):
            small = np.sort(heavy[:u])[: self.l - 1]
            others = light[u] + small.sum() - np.minimum(heavy[:u], small[-1])
            worst = max(worst, float((heavy[:u] / (heavy[:u] + others)).max()), light[u] / (light[u] + small.sum()))
        return worst
