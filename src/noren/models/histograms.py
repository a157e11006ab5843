"""The values of a sensitive column in classes of records, as sparse histograms.

A generalised sensitive value says only "one of these": a record with node g counts w(a) / sum of w under g for each
base value a under g (paper 004, definition of induced frequencies), with all weights 1 unless a model says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from noren.ragged import in_order, offsets_of, owners
from noren.statements import Statement

CHUNK = 1 << 20
"""Entries of histograms that are worked on at once."""


@dataclass(frozen=True)
class Histograms:
    """Histograms of some classes over base values: entries starts[i] <= e < starts[i+1] belong to class i, each
    positive."""

    n: NDArray[np.int64]
    """Records of every class."""
    starts: NDArray[np.int64]
    value: NDArray[np.int64]
    mass: NDArray[np.float64]
    """How many records of the class have this value; a record that is generalised is divided among its values."""
    lone: NDArray[np.int64] | None = None
    """Where people have several rows: the most values of a class that one person alone has."""

    def __len__(self) -> int:
        return len(self.n)

    @cached_property
    def distinct(self) -> NDArray[np.int64]:
        """Return the number of different values of every class."""
        return np.diff(self.starts)

    @property
    def distinct_beside(self) -> NDArray[np.int64]:
        """Return how many values remain possible for a person if the values of the other members are known."""
        return self.distinct if self.lone is None else np.minimum(self.distinct, 1 + self.distinct - self.lone)

    @cached_property
    def owner(self) -> NDArray[np.int64]:
        """Return the class of every entry."""
        return owners(self.starts)

    @cached_property
    def share(self) -> NDArray[np.float64]:
        """Return every entry as a share of its class."""
        return np.asarray(self.mass / self.n[self.owner])

    @cached_property
    def ranked_masses(self) -> NDArray[np.float64]:
        """Return the masses of every class, largest first."""
        return np.asarray(self.mass[np.lexsort((-self.mass, self.owner))])

    def total(self, of: NDArray) -> NDArray:
        """Return the sum of an array over the entries of each class."""
        return np.asarray(np.add.reduceat(of, self.starts[:-1]))

    def largest(self, of: NDArray) -> NDArray:
        """Return the maximum of an array over the entries of each class."""
        return np.asarray(np.maximum.reduceat(of, self.starts[:-1]))

    def merge_values(self, groups: NDArray[np.int64]) -> Histograms:
        """Return the same classes over groups of values: groups[v] is the group of value v."""
        return sum_entries(self.n, self.owner, groups[self.value], self.mass, int(groups.max()) + 1)


def sum_entries(n: NDArray, owner: NDArray, value: NDArray, mass: NDArray, d: int) -> Histograms:
    """Sum entries in any order into histograms, each (class, value) any number of times."""
    key = owner * np.int64(d) + value
    if (key[1:] < key[:-1]).any():
        order = in_order(key)
        key, mass = key[order], mass[order]
    first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]])) if len(key) else np.zeros(0, np.int64)
    mass = np.add.reduceat(mass, first) if len(key) else mass
    starts = np.searchsorted(key[first] // d, np.arange(len(n) + 1))
    return Histograms(n, starts, key[first] % d, mass)


@dataclass(frozen=True)
class ClassTable:
    """All classes of a release, with sparse histograms of published codes (base values, or nodes)."""

    column: Statement | None
    n: NDArray[np.int64]
    """Records of every class; for groups what their table says."""
    found: NDArray[np.int64]
    """Records that were seen of every class. It differs from n only where cells and group table disagree."""
    starts: NDArray[np.int64]
    code: NDArray[np.int64]
    count: NDArray[np.int64]
    stray: int = 0
    """Records whose group the table does not know."""

    def __len__(self) -> int:
        return len(self.n)

    def histograms(self, weights: NDArray[np.float64] | None = None, holders: bool = False) -> Iterator[Histograms]:
        """Yield the classes in order, some at a time, over base values. With one row per person, `holders` has no
        effect."""
        column = self.column
        nodes = None if column is None else column.nodes
        widths = np.ones(len(self.code), np.int64) if nodes is None else nodes.sizes[self.code]
        reach = offsets_of(widths)[self.starts]
        begin = 0
        while begin < len(self):
            end = max(begin + 1, int(np.searchsorted(reach, reach[begin] + CHUNK, side="right")) - 1)
            low, high = self.starts[begin], self.starts[end]
            n, starts = self.n[begin:end], self.starts[begin : end + 1] - low
            code, count = self.code[low:high], self.count[low:high].astype(np.float64)
            if nodes is None:
                yield Histograms(n, starts, code, count)
            else:
                assert column is not None
                value, bounds = nodes.flat_members(code)
                mass = parts_of_nodes(value, bounds, weights) * np.repeat(count, widths[low:high])
                owner = owners(bounds[starts])
                some = mass > 0
                yield sum_entries(n, owner[some], value[some], mass[some], column.d)
            begin = end

    def shares(self, d: int, weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return the distribution of base values in the whole release."""
        total = np.zeros(d)
        for part in self.histograms(weights):
            total += np.bincount(part.value, part.mass, minlength=d)
        return total / max(1, int(self.n.sum()))


def parts_of_nodes(value: NDArray, bounds: NDArray, weights: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Return the share of each value in its node, entries bounds[i] to bounds[i + 1]: by weight, or equal if nothing
    under the node has a weight."""
    sizes = np.diff(bounds)
    if weights is None:
        return np.repeat(1 / sizes, sizes)
    mass = weights[value]
    whole = np.add.reduceat(mass, bounds[:-1]) if len(mass) else np.zeros(0)
    each = np.where(np.repeat(whole > 0, sizes), mass, 1.0) / np.repeat(np.where(whole > 0, whole, sizes), sizes)
    return np.asarray(each, np.float64)


@dataclass(frozen=True)
class PeopleTable(ClassTable):
    """Classes of people: entries are (person, code) pairs, and `whose` gives the person of every entry."""

    whose: NDArray[np.int64] | None = None
    person: NDArray[np.int64] | None = None
    """The person of every entry, the same in all classes."""

    def shares(self, d: int, weights: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return the mean over all people of the shares of their rows, in all classes."""
        assert self.person is not None
        people = int(self.person.max(initial=-1)) + 1
        rows = np.bincount(self.person, self.count, minlength=people)
        there = int((rows > 0).sum())
        value, mass, entry = self._values(weights)
        part = mass * self.count[entry] / rows[self.person[entry]]
        return np.asarray(np.bincount(value, part, minlength=d) / max(1, there))

    def _values(self, weights: NDArray[np.float64] | None) -> tuple[NDArray, NDArray, NDArray]:
        """Return the base values of all entries, their shares in the entry, and the entry."""
        nodes = None if self.column is None else self.column.nodes
        if nodes is None:
            return self.code, np.ones(len(self.code)), np.arange(len(self.code))
        value, bounds = nodes.flat_members(self.code)
        mass = parts_of_nodes(value, bounds, weights)
        entry = owners(bounds)
        some = mass > 0
        return value[some], mass[some], entry[some]

    def histograms(self, weights: NDArray[np.float64] | None = None, holders: bool = False) -> Iterator[Histograms]:
        """Yield classes; with `holders` a value's mass is its number of people, otherwise the sum of the shares of
        people's rows."""
        d = 1 if self.column is None else self.column.d
        assert self.whose is not None
        owner = owners(self.starts)
        value, mass, entry = self._values(weights)
        rows = np.bincount(self.whose, self.count)
        whose, of = self.whose[entry], owner[entry]
        if holders:
            key, place = np.unique(whose * np.int64(d) + value, return_inverse=True)
            most = np.zeros(len(key))
            np.maximum.at(most, place.ravel(), mass)
            class_of = np.zeros(int(self.whose.max()) + 1, np.int64)
            class_of[whose] = of
            found = sum_entries(self.n, class_of[key // d], key % d, most, d)
        else:
            found = sum_entries(self.n, of, value, mass * self.count[entry] / rows[whose], d)
        yield replace(found, lone=self._lone(of, whose, value, d))

    def of_rows(self) -> ClassTable:
        """Return the same classes counted in rows, as everybody sees them."""
        d = int(self.code.max(initial=-1)) + 1
        owner = owners(self.starts)
        seen = sum_entries(self.n, owner, self.code, self.count.astype(np.float64), d)
        count = seen.mass.astype(np.int64)
        rows = np.add.reduceat(count, seen.starts[:-1]) if len(count) else self.n
        return ClassTable(self.column, rows, rows, seen.starts, seen.value, count)

    def _lone(self, of: NDArray, whose: NDArray, value: NDArray, d: int) -> NDArray[np.int64]:
        """Return for every class the largest number of values that only one of its people has."""
        pairs = np.unique(np.stack([of * np.int64(d) + value, whose], axis=1), axis=0)
        _, start, times = np.unique(pairs[:, 0], return_index=True, return_counts=True)
        alone = times == 1
        person, number = np.unique(pairs[start[alone], 1], return_counts=True)
        class_of = np.zeros(int(whose.max(initial=0)) + 1, np.int64)
        class_of[whose] = of
        out = np.zeros(len(self), np.int64)
        np.maximum.at(out, class_of[person], number)
        return out
