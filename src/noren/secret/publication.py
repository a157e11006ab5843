"""What one release adds to a register: who is in it, how every protected column is published, and what is permitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from noren.secret.people import KeyRule
from noren.secret.signatures import ClassSets

Repeat = Literal["refuse", "allow"]


@dataclass(frozen=True)
class DrawnColumn:
    """How one attribute is drawn: its domain in order, the design's name, set size eta and coin p."""

    domain: tuple[str, ...]
    design: str
    eta: int
    p: float

    def differences(self, other: DrawnColumn) -> list[str]:
        """What `other` would change, in words. Values are counted, not quoted: a domain may come from the data."""
        changes = []
        if self.domain != other.domain:
            old, new = set(self.domain), set(other.domain)
            if old == new:
                changes.append(f"domain (the same {len(old)} values in another order)")
            else:
                changes.append(
                    f"domain (recorded {len(self.domain)} values, now {len(other.domain)}: "
                    f"{len(new - old)} new, {len(old - new)} gone)"
                )
        for name in ("design", "eta", "p"):
            old_value, new_value = getattr(self, name), getattr(other, name)
            if old_value != new_value:
                changes.append(f"{name} (recorded {old_value}, now {new_value})")
        return changes


@dataclass(frozen=True)
class PublishedClasses:
    """The values that everybody's class leaves possible, and what must stay possible over all releases."""

    sets: ClassSets
    """Of the publication's people, in their order."""
    least: int = 2
    """How many values must stay possible for a person who was published before."""
    invariant: bool = False
    """Whether everybody must be among the same values as before."""


def _nobody() -> NDArray[np.uint64]:
    return np.zeros(0, np.uint64)


@dataclass(frozen=True)
class Publication:
    """A release that is about to be made. Columns are named as the register knows them."""

    key: KeyRule
    drawn: Mapping[str, DrawnColumn] = field(default_factory=dict)
    memoised: bool = True
    """Whether drawn sets are those that the secret gives, or new ones."""
    people: NDArray[np.uint64] = field(default_factory=_nobody)
    """The people in it, each once."""
    classes: Mapping[str, PublishedClasses] = field(default_factory=dict)
    named: frozenset[str] = frozenset()
    """Columns of which the policy says how the register knows them."""
    repeat: Repeat = "refuse"
    """What happens where two releases of one person could be intersected."""
    spent: float = 0.0
    """The sum of the epsilons of its noised margins."""
    budget: float | None = None
    """The most that all releases together may spend."""

    @property
    def domains(self) -> dict[str, tuple[str, ...]]:
        """The values of every protected column."""
        drawn = {name: one.domain for name, one in self.drawn.items()}
        return drawn | {name: one.sets.values for name, one in self.classes.items()}
