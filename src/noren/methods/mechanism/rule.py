"""A rule: what whoever knows a method can conclude from the form of its release, beyond what the classes say."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from noren.errors import ModelDoesNotApply
from noren.methods.mechanism.sight import Sight

CERTAIN = 1 - 1e-6


class Left(NamedTuple):
    """People who left a group that kept one secret too common for more of it: all of them had that one."""

    items: NDArray[np.int64]
    stayed: NDArray[np.float64]
    value: int


@dataclass(frozen=True)
class Beliefs:
    """What is believed about everybody's secret, from the classes alone and with the rule."""

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
        """How many people left groups of one such secret, and how many of them really have it."""
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
        """How much everybody's true secret is believed; 0 for one that the release does not list."""
        table = self.after if after else self.before
        found = table[self.item, np.maximum(secrets, 0)]
        return np.asarray(np.where(secrets >= 0, found, 0.0))


class Rule(ABC):
    """How an adversary replays a method."""

    says: str
    """What the adversary knows of the method, in a sentence."""

    @property
    def refuses_cuts(self) -> bool:
        """Whether each class stayed whole because a part of it fell short."""
        return False

    @property
    def answers_some(self) -> bool:
        """Whether beliefs about some items alone can be asked for (`Sight.asking`)."""
        return False

    @property
    def silent(self) -> bool:
        """Whether the form of the release tells nothing beyond its classes."""
        return False

    @property
    def bounded(self) -> bool:
        """Whether nobody learns more than the beliefs say. Elsewhere they show what is learned at least, and a release
        is never said to keep what the method tells within a limit."""
        return True

    def drawn(self, draws: int) -> Rule:
        """The same rule with so many draws, where something is simulated class by class."""
        return self

    @abstractmethod
    def beliefs(self, sight: Sight) -> Beliefs:
        """What follows about everybody."""

    def certain(self, sight: Sight, secrets: NDArray[np.int64]) -> NDArray[np.bool_]:
        """The people whose secret the rule may give away for certain, where the classes alone do not.

        secrets: everybody's true one. It serves to prove that somebody's could be another.
        """
        found = self.beliefs(sight)
        known = found.told[found.item] & (found.of_truth(secrets) >= CERTAIN)
        return np.asarray(known & (found.of_truth(secrets, after=False) < CERTAIN))


@dataclass(frozen=True)
class Silent(Rule):
    """A rule that no secret takes part in: the classes say what there is to know."""

    says: str

    @property
    def silent(self) -> bool:
        return True

    def beliefs(self, sight: Sight) -> Beliefs:
        return unchanged(sight)


@dataclass(frozen=True)
class NotReplayed(Silent):
    """A rule in which secrets take part and that nobody has put into code yet: nothing can be promised about it."""

    @property
    def bounded(self) -> bool:
        return False

    def beliefs(self, sight: Sight) -> Beliefs:
        raise ModelDoesNotApply(
            f"what the method tells cannot be computed: {self.says}.",
            hint="Leave the requirement 'mechanism' out, or use a method whose rule is known.",
        )


def unchanged(sight: Sight, notes: Sequence[str] = (), **facts: Any) -> Beliefs:
    """What the classes say, and nothing else."""
    items = len(sight.before)
    item = sight.place[sight.item]
    return Beliefs(item, sight.before, sight.before, np.zeros(items, bool), np.zeros(items), facts, notes)
