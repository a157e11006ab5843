"""The homogeneity and the skewness attack: what a class discloses because its records agree in the secret.

A class with one sensitive value tells it of all its members, however many they are (Machanavajjhala et al. 2007). A
class whose distribution leans away from the overall one makes a rare value likely, even where it holds many values
(Li, Li and Venkatasubramanian 2007): that is the largest ratio of a belief to its prior.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from noren.audit.class_attack import CERTAIN, ClassAttack, Columns, best_guess, guessed
from noren.audit.sample import Times, mean
from noren.audit.targets import Target
from noren.models.histograms import Histograms


class Homogeneity(ClassAttack):
    """Find a person's class and guess its most frequent sensitive value."""

    knows: ClassVar[str] = "a person"
    adversary: ClassVar[str] = (
        "knows that a person is in the table, the person's exact quasi-identifiers, and the overall frequencies of "
        "the sensitive values; for decoy sets, also which row belongs to the person"
    )
    success: ClassVar[str] = (
        "the share of records whose class has a single value; the largest belief in one value, its gain over the "
        "overall distribution, and how many times likelier a value becomes (skewness)"
    )
    titles: ClassVar[Mapping[str, str]] = {
        "certain": "certain",
        "above": "above the threshold",
        "mean_belief": "mean belief",
        "max_belief": "largest belief",
        "mean_gain": "mean gain",
        "max_gain": "largest gain",
        "max_ratio": "times likelier",
    }
    truth_titles: ClassVar[Mapping[str, str]] = {"right": "right guess", "mean_truth_belief": "belief in the truth"}
    shares: ClassVar[tuple[str, ...]] = ("certain", "above", "mean_belief")

    name: Literal["homogeneity"] = "homogeneity"
    threshold: float = Field(default=0.5, ge=0, lt=1, description="A belief above this counts as nearly certain.")

    def concludes(self, told: Histograms, target: Target) -> Columns:
        prior = target.prior[told.value]
        ratio = np.divide(told.share, prior, out=np.full(len(prior), np.inf), where=prior > 0)
        found = best_guess(told)
        found |= {"values": told.distinct, "gain": told.largest(told.share - prior), "ratio": told.largest(ratio)}
        return found

    def compares(self, told: Histograms, found: Columns, target: Target, of: NDArray, truth: NDArray) -> Columns:
        return guessed(told, found, of, truth, target.d)

    def sums(self, lines: Columns, target: Target, times: Times = None) -> dict[str, float]:
        belief, gain, ratio = lines["belief"], lines["gain"], lines["ratio"]
        out = {
            "certain": mean(belief >= CERTAIN, times),
            "above": mean(belief > self.threshold + 1e-12, times),
            "mean_belief": mean(belief, times),
            "max_belief": float(belief.max()),
            "mean_gain": mean(gain, times),
            "max_gain": float(gain.max()),
            "mean_ratio": mean(ratio, times),
            "max_ratio": float(ratio.max()),
            "min_values": int(lines["values"].min()),
        }
        if "right" in lines:
            out |= {"right": mean(lines["right"], times), "mean_truth_belief": mean(lines["truth_belief"], times)}
        return out

    def facts(self, target: Target) -> dict[str, Any]:
        return {"threshold": self.threshold}
