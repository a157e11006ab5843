"""Rules: what an adversary who knows a method can conclude from the classes of its release."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from noren.errors import ModelDoesNotApply
from noren.methods.mechanism.sight import Sight

CERTAIN = 1 - 1e-6


class Left(NamedTuple):
    """The people who left a group because one secret was too frequent: all of them had it."""

    items: NDArray[np.int64]
    stayed: NDArray[np.float64]
    value: int


@dataclass(frozen=True)
class Beliefs:
    """The beliefs about all secrets, from the classes only and with the rule."""

    item: NDArray[np.int64]
    """The line of every person in the two tables."""
    before: NDArray[np.float64]
    after: NDArray[np.float64]
    """(items, values) distributions."""
    told: NDArray[np.bool_]
    """Per item: whether the rule says something about it."""
    error: NDArray[np.float64]
    """Per item: standard error of a simulated belief, 0 where it was computed."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    left: Sequence[Left] = ()

    def leavers(self, secrets: NDArray[np.int64]) -> tuple[int, int]:
        """Return how many people left groups because of one secret, and how many of them have it."""
        d = self.after.shape[1]
        listed = secrets >= 0
        table = np.bincount(self.item[listed] * d + secrets[listed], minlength=len(self.after) * d).reshape(-1, d)
        moved = right = 0.0
        for one in self.left:
            gone = table[one.items].sum(axis=0) - one.stayed
            moved += gone.sum()
            right += gone[one.value]
        return round(moved), round(right)

    def of_truth(self, secrets: NDArray[np.int64], after: bool = True) -> NDArray[np.float64]:
        """Return the belief in everybody's true secret; 0 for one that the release does not list."""
        table = self.after if after else self.before
        found = table[self.item, np.maximum(secrets, 0)]
        return np.asarray(np.where(secrets >= 0, found, 0.0))


class Rule(ABC):
    """How an adversary replays a method."""

    says: str
    """What the adversary knows of the method, in a sentence."""

    refuses_cuts: ClassVar[bool] = False
    """Whether each class stayed whole because a part of it fell short."""
    silent: ClassVar[bool] = False
    """Whether the form of the release discloses nothing beyond its classes."""
    bounded: ClassVar[bool] = True
    """Whether nobody learns more than the beliefs say. Elsewhere they show what is learned at least, and a release is
    never said to keep what the method tells within a limit."""

    @abstractmethod
    def beliefs(self, sight: Sight) -> Beliefs:
        """Return the beliefs about everybody."""

    def certain(self, sight: Sight, secrets: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return the people whose secret the rule may disclose for certain, although the classes do not.

        secrets: everybody's true one. It serves to prove that somebody's could be another.
        """
        found = self.beliefs(sight)
        known = found.told[found.item] & (found.of_truth(secrets) >= CERTAIN)
        return np.asarray(known & (found.of_truth(secrets, after=False) < CERTAIN))


@dataclass(frozen=True)
class Silent(Rule):
    """A rule without influence of secrets, so that nothing follows beyond the classes."""

    says: str

    silent: ClassVar[bool] = True

    def beliefs(self, sight: Sight) -> Beliefs:
        return unchanged(sight)


@dataclass(frozen=True)
class NotReplayed(Silent):
    """A rule that depends on secrets and cannot be replayed, so that no bound is known."""

    bounded: ClassVar[bool] = False

    def beliefs(self, sight: Sight) -> Beliefs:
        raise ModelDoesNotApply(
            f"what the method discloses cannot be computed: {self.says}.",
            hint="Remove the requirement 'mechanism', or use a method with a known rule.",
        )


def unchanged(sight: Sight, notes: Sequence[str] = (), **facts: Any) -> Beliefs:
    """Return the beliefs from the classes."""
    none = np.zeros(sight.items)
    return Beliefs(sight.item, sight.before, sight.before, none > 0, none, facts, notes)
