"""Positive and negative disclosure: values that become likely, and values that are excluded.

Positive is the rho1-to-rho2 breach of Evfimievski, Gehrke and Srikant (2003): a value believed with at most rho1
before and with at least rho2 after; downward, from at least rho2 to at most rho1. Negative disclosure
(Machanavajjhala et al. 2007): values that occur in the table and cannot be the person's. Properties are single values
here. For decoy sets the design bounds all properties at once: where no value is more than gamma times likelier to give
a set than another and rho2 (1 - rho1) > gamma rho1 (1 - rho2), no property of a value can be breached.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import exp
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from noren.audit.class_attack import ClassAttack, Columns, belief_in
from noren.audit.sample import Times, mean
from noren.audit.targets import Target
from noren.models.histograms import Histograms

NOTHING = 1e-12
"""A belief or a share below this is none, and one that is so near to a bound has reached it: before and after alike."""


class Disclosure(ClassAttack):
    """Find a person's class, and compare beliefs after the release with beliefs before it."""

    knows: ClassVar[str] = "a person"
    adversary: ClassVar[str] = (
        "knows that a person is in the table, the person's exact quasi-identifiers, and the overall frequencies of "
        "the sensitive values; for decoy sets, also which row belongs to the person"
    )
    success: ClassVar[str] = (
        "positive: the share of records with a value believed at most rho1 before and at least rho2 after; "
        "negative: the values that are ruled out, and the share of all people who have them"
    )
    titles: ClassVar[Mapping[str, str]] = {
        "positive": "positive",
        "downward": "downward",
        "negative": "any value ruled out",
        "mean_excluded": "mean values ruled out",
        "mean_excluded_mass": "mean share ruled out",
    }
    truth_titles: ClassVar[Mapping[str, str]] = {"right": "positive and true"}
    shares: ClassVar[tuple[str, ...]] = ("positive", "downward", "negative", "mean_excluded_mass")

    name: Literal["disclosure"] = "disclosure"
    rho1: float = Field(default=0.3, gt=0, lt=1, description="Belief before the release: at most rho1.")
    rho2: float = Field(
        default=0.7, gt=0, lt=1, description=("Belief after the release from which a value counts as disclosed.")
    )

    @model_validator(mode="after")
    def _rises(self) -> Disclosure:
        if self.rho1 >= self.rho2:
            raise ValueError("rho1 must be below rho2")
        return self

    def concludes(self, told: Histograms, target: Target) -> Columns:
        prior = target.prior[told.value]
        breached = (prior <= self.rho1 + NOTHING) & (told.share >= self.rho2 - NOTHING)
        reached = np.where(breached, told.share, 0.0)
        most = told.largest(reached)
        best = breached & (reached >= most[told.owner] - NOTHING)
        # -1 where nothing is breached
        value = told.largest(np.where(best, told.value, -1))
        possible = told.share > NOTHING
        excluded = _occurring(target) - told.total((possible & (prior > NOTHING)).astype(np.int64))
        mass = 1 - told.total(np.where(possible, prior, 0.0)) / max(float(target.prior.sum()), 1e-300)
        return {
            "belief": told.largest(told.share),
            "positive": most > 0,
            "value": value,
            "downward": self._downward(told, target),
            "excluded": excluded,
            "excluded_mass": np.where(excluded > 0, np.clip(mass, 0, 1), 0.0),
        }

    def _downward(self, told: Histograms, target: Target) -> NDArray[np.bool_]:
        """Return whether a value that nearly everybody has is nearly excluded. At most 1 / rho2 values can be such."""
        out, sets = np.zeros(len(told), bool), np.arange(len(told))
        for value in np.flatnonzero(target.prior >= self.rho2 - NOTHING).tolist():
            out |= belief_in(told, sets, np.full(len(told), value), target.d) <= self.rho1 + NOTHING
        return out

    def compares(self, told: Histograms, found: Columns, target: Target, of: NDArray, truth: NDArray) -> Columns:
        return {"right": (found["value"][of] == truth).astype(float)}

    def sums(self, lines: Columns, target: Target, times: Times = None) -> dict[str, float]:
        occurring = max(1, _occurring(target))
        out = {
            "positive": mean(lines["positive"], times),
            "downward": mean(lines["downward"], times),
            "negative": mean(lines["excluded"] > 0, times),
            "mean_excluded": mean(lines["excluded"], times),
            "max_excluded": int(lines["excluded"].max()),
            "mean_excluded_share": mean(lines["excluded"], times) / occurring,
            "mean_excluded_mass": mean(lines["excluded_mass"], times),
            "mean_belief": mean(lines["belief"], times),
        }
        return out | ({"right": mean(lines["right"], times)} if "right" in lines else {})

    def facts(self, target: Target) -> dict[str, Any]:
        out: dict[str, Any] = {"rho1": self.rho1, "rho2": self.rho2, "occurring": _occurring(target)}
        design = target.statement.design
        if design is not None:
            gamma = exp(design.epsilon)
            out |= {"gamma": gamma, "gamma_bound": self._odds, "bounded": gamma < self._odds}
        return out

    @property
    def _odds(self) -> float:
        """Return the likelihood ratio below which no belief can rise from rho1 to rho2."""
        return self.rho2 * (1 - self.rho1) / (self.rho1 * (1 - self.rho2))

    def notes(self, target: Target, rows: Columns) -> list[str]:
        facts = self.facts(target)
        if facts.get("bounded"):
            return [
                (
                    f"under the design no set is more than {facts['gamma']:.3g} times likelier for one value than for "
                    f"another, so no belief can rise from {self.rho1:g} to {self.rho2:g}, whatever the prior"
                )
            ]
        return []


def _occurring(target: Target) -> int:
    """Return the number of values that occur."""
    return int((target.prior > NOTHING).sum())
