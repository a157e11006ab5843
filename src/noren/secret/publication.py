"""The entry of a release in a register: its people, how every protected column is published, and the permissions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from noren.ragged import chosen, offsets_of, owners
from noren.secret.key import KeyRule

# ---------------------------------------------------------------------- values that earlier releases leave possible
#
# A person who is in two releases has a value that is possible in both. The register keeps what is possible after all
# releases so far, as numbered sets: row i of the sets holds codes[bounds[i]:bounds[i + 1]], ascending.


NOBODY = -1


@dataclass(frozen=True)
class ClassSets:
    """The possible values of some people: `which` is the set of every person, NOBODY for a person without one."""

    values: tuple[str, ...]
    which: NDArray[np.int64]
    bounds: NDArray[np.int64]
    codes: NDArray[np.int64]

    @classmethod
    def none(cls, people: int) -> ClassSets:
        return cls((), np.full(people, NOBODY, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int64))

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Return the number of values of every set."""
        return np.diff(self.bounds)

    def of(self, who: NDArray) -> ClassSets:
        """Return the sets of some people."""
        return ClassSets(self.values, self.which[who], self.bounds, self.codes)

    def place_among(self, people: int, at: NDArray[np.int64]) -> ClassSets:
        """Return the same sets with the people at other positions among more people."""
        which = np.full(people, NOBODY, np.int64)
        which[at] = self.which
        return ClassSets(self.values, which, self.bounds, self.codes)

    def over(self, values: Sequence[str]) -> ClassSets:
        """Return the same sets over a list of values that contains all of theirs."""
        index = {value: code for code, value in enumerate(values)}
        place = np.array([index[value] for value in self.values], np.int64)
        codes = place[self.codes] if len(self.codes) else self.codes
        order = np.lexsort([codes, owners(self.bounds)])
        return ClassSets(tuple(values), self.which, self.bounds, codes[order])

    def distinct(self) -> ClassSets:
        """Return the same with every distinct set once, and without unused sets."""
        used = np.flatnonzero(np.bincount(self.which[self.which >= 0], minlength=len(self.bounds) - 1))
        bounds, entries = chosen(self.bounds, used)
        number, firsts = _number_rows(bounds, self.codes[entries])
        place = np.full(len(self.bounds), NOBODY, np.int64)
        place[used] = number
        which = np.where(self.which >= 0, place[self.which], NOBODY)
        kept, at = chosen(bounds, firsts)
        return ClassSets(self.values, which, kept, self.codes[entries][at])

    def meet(self, other: ClassSets) -> Meeting:
        """Return the values that remain possible for everybody with a set in both; both list the same people in one
        order."""
        values = tuple(dict.fromkeys([*self.values, *other.values]))
        one, two = self.over(values), other.over(values)
        both = (one.which >= 0) & (two.which >= 0)
        span = len(two.bounds)
        pairs, pair = np.unique(one.which[both] * span + two.which[both], return_inverse=True)
        mine, theirs = chosen(one.bounds, pairs // span), chosen(two.bounds, pairs % span)
        width = max(1, len(values))
        keys = owners(mine[0]) * width + one.codes[mine[1]]
        keys = keys[np.isin(keys, owners(theirs[0]) * width + two.codes[theirs[1]], assume_unique=True)]
        left = np.bincount(keys // width, minlength=len(pairs))
        which = np.full(len(both), NOBODY, np.int64)
        which[both] = pair.ravel()
        common = ClassSets(values, which, offsets_of(left), keys % width)
        return Meeting(one, two, common)


@dataclass(frozen=True)
class Meeting:
    """Two releases of the same people, and the values that both leave possible."""

    before: ClassSets
    now: ClassSets
    common: ClassSets

    @property
    def both(self) -> NDArray[np.bool_]:
        """Return who has a set in both."""
        return self.common.which >= 0

    @property
    def left(self) -> NDArray[np.int64]:
        """Return how many values remain possible for these people."""
        return self.common.sizes[self.common.which[self.both]]

    @property
    def alone(self) -> NDArray[np.int64]:
        """Return the smaller number of values that either release by itself leaves possible."""
        before, now = (sets.sizes[sets.which[self.both]] for sets in (self.before, self.now))
        return np.minimum(before, now)

    def find_exposed(self, least: int) -> NDArray[np.bool_]:
        """Return for whom both together leave fewer values than `least`, and fewer than either by itself."""
        return np.asarray((self.left < least) & (self.left < self.alone))

    @property
    def changed(self) -> NDArray[np.bool_]:
        """Return whose set has changed."""
        before, now = (sets.sizes[sets.which[self.both]] for sets in (self.before, self.now))
        return np.asarray((self.left < before) | (self.left < now))

    @property
    def after(self) -> ClassSets:
        """Return the values that remain possible for everybody with a set in either."""
        parts = (self.common, self.before, self.now)
        starts = np.cumsum([0, *(len(part.bounds) - 1 for part in parts)])
        which = np.full(len(self.common.which), NOBODY, np.int64)
        for part, start in reversed(list(zip(parts, starts, strict=False))):
            which = np.where(part.which >= 0, part.which + start, which)
        bounds = offsets_of(np.concatenate([part.sizes for part in parts]))
        codes = np.concatenate([part.codes for part in parts])
        return ClassSets(self.common.values, which, bounds, codes).distinct()


def _number_rows(bounds: NDArray[np.int64], codes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number the rows so that equal rows have equal numbers, and return one row of each number."""
    sizes = np.diff(bounds)
    number = np.zeros(len(sizes), np.int64)
    firsts: list[NDArray[np.int64]] = []
    count = 0
    for size in np.unique(sizes).tolist():
        rows = np.flatnonzero(sizes == size)
        lines = codes[(bounds[rows][:, None] + np.arange(size)).ravel()].reshape(len(rows), size)
        _, first, place = np.unique(lines, axis=0, return_index=True, return_inverse=True)
        number[rows] = count + place.ravel()
        firsts.append(rows[first])
        count += len(first)
    return number, np.concatenate(firsts) if firsts else np.zeros(0, np.int64)


Repeat = Literal["refuse", "allow"]


@dataclass(frozen=True)
class DrawnColumn:
    """The design of one attribute: its domain in order, the design's name, set size eta and p."""

    domain: tuple[str, ...]
    design: str
    eta: int
    p: float

    def differences(self, other: DrawnColumn) -> list[str]:
        """Return what `other` would change, in words. Values are counted, not quoted, because a domain may come from
        the data."""
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
    """The possible values in everybody's class, and the number that must remain possible over all releases."""

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
    """A planned release. Columns have the names of the register."""

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
        """Return the values of every protected column."""
        drawn = {name: one.domain for name, one in self.drawn.items()}
        return drawn | {name: one.sets.values for name, one in self.classes.items()}
