"""GD and UAD, the decompositions of the paper's related work: which attributes may stand together in one sub-table.

Both publish sub-tables, each made by an existing algorithm that tells quasi-identifiers from secrets, so that all rules
hold. A rule (all other attributes -> one) is what l > 1 or t < 1 asks of an attribute that is both at once. Of the two,
only this much is public in their authors' summary; the order in which GD decomposes is not needed to see where it must
end, and whether it ends is not to be seen from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product


@dataclass(frozen=True)
class SubTable:
    """A published sub-table: attributes that the algorithm takes as known, and those hidden from who knows them."""

    known: frozenset[str]
    hidden: frozenset[str]

    @property
    def attributes(self) -> frozenset[str]:
        return self.known | self.hidden

    def keeps(self, secret: str) -> bool:
        """Whether it keeps "all others -> secret": the algorithm guards hidden attributes against known ones alone."""
        if secret not in self.attributes or len(self.attributes) == 1:
            return True  # no link to the secret is published here
        return secret in self.hidden and self.attributes - {secret} <= self.known


def sub_tables(attributes: Sequence[str]) -> Iterator[SubTable]:
    """Every choice of attributes, with every way to call them known or hidden."""
    for places in product(("absent", "known", "hidden"), repeat=len(attributes)):
        parts = {
            place: frozenset(name for name, at in zip(attributes, places, strict=True) if at == place)
            for place in ("known", "hidden")
        }
        if parts["known"] or parts["hidden"]:
            yield SubTable(**parts)


def kept_pairs(levels: Mapping[str, int]) -> set[frozenset[str]]:
    """The pairs of attributes that some sub-table may hold and break no rule; levels: the l of every attribute."""
    secrets = [name for name, level in levels.items() if level > 1]
    return {
        frozenset(pair)
        for table in sub_tables(list(levels))
        if all(table.keeps(secret) for secret in secrets)
        for pair in combinations(sorted(table.attributes), 2)
    }


def lost_pairs(levels: Mapping[str, int]) -> set[frozenset[str]]:
    """The pairs whose relationship no decomposition can publish."""
    return {frozenset(pair) for pair in combinations(sorted(levels), 2)} - kept_pairs(levels)
