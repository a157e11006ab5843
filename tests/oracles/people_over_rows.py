"""Slow, plain answers about people over all their rows (DEFINITIONS, part 8.1): sets of classes, one person at a time.

An adversary knows the quasi-identifiers of all rows of everybody. A row may lie in every class whose published cells
cover it; what a person can have is what all their rows leave possible together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

Cover = Mapping[str, frozenset[Any]]
"""The values that every column of a class leaves possible."""


@dataclass(frozen=True)
class Told:
    """What is left of one person."""

    possible: frozenset[Hashable]
    """V(i)."""
    owners: int
    """How many people could own all the rows."""
    belief: Mapping[Hashable, float]
    """The normalised product of the pooled shares over the distinct sets of classes that cover the rows."""
    together: Mapping[Hashable, float]
    """The pooled shares of the classes that cover every row: the belief where all rows of a person are in one class."""


def covering(covers: Sequence[Cover], row: Mapping[str, Any]) -> frozenset[int]:
    """K(r)."""
    return frozenset(c for c, cover in enumerate(covers) if all(row[name] in values for name, values in cover.items()))


def told(
    covers: Sequence[Cover], held: Sequence[Counter[Hashable]], rows: Mapping[Hashable, Sequence[Mapping[str, Any]]]
) -> dict[Hashable, Told]:
    """What is left of everybody. held: how many rows of every class publish each secret; rows: those of everybody."""
    found = {person: [covering(covers, row) for row in own] for person, own in rows.items()}
    out = {}
    for person, own in found.items():
        sets = [frozenset(value for c in some for value in held[c]) for some in own]
        pooled = [sum((held[c] for c in some), Counter()) for some in set(own)]
        weight = {value: prod(one[value] / one.total() for one in pooled) for value in frozenset.intersection(*sets)}
        whole = sum(weight.values())
        owners = sum(all(any(some & other for other in others) for some in own) for others in found.values())
        belief = {value: part / whole for value, part in weight.items()} if whole else {}
        every = sum((held[c] for c in frozenset.intersection(*own)), Counter())
        together = {value: many / every.total() for value, many in every.items()}
        out[person] = Told(frozenset.intersection(*sets), owners, belief, together)
    return out


def by_counts(rows: Sequence[tuple[Hashable, int]]) -> list[int]:
    """How many values stay possible for everybody in one class, where each has one value and the class shows how many
    rows have every value: all ways to give everybody one value are tried. rows: everybody's value and number of rows.
    """
    needed: Counter[Hashable] = Counter()
    for value, many in rows:
        needed[value] += many
    possible: list[set[Hashable]] = [set() for _ in rows]

    def give(person: int, left: Counter[Hashable], given: list[Hashable]) -> None:
        if person == len(rows):
            for one, value in zip(possible, given, strict=True):
                one.add(value)
            return
        for value in needed:
            if left[value] >= rows[person][1]:
                give(person + 1, left - Counter({value: rows[person][1]}), [*given, value])

    give(0, needed, [])
    return [len(one) for one in possible]
