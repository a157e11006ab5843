"""The un-aggregated form the slow and obvious way: write out every combination, group the rows, count.

Definitions 10 to 14 and 17 of the sensitive-quasi-identifier paper. A record is a list of sets, one per column; a
column published exactly is a set of one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import exp, log

Record = Sequence[frozenset[int]]


def rows(records: Sequence[Record]) -> list[tuple[int, ...]]:
    """The Cartesian product of every record's sets, all records below each other."""
    return [row for record in records for row in product(*(sorted(cell) for cell in record))]


def classes(records: Sequence[Record], j: int) -> list[Counter[int]]:
    """Equivalence classes for column j: rows that agree in all other columns, as counts of their values in j."""
    found: defaultdict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
    for row in rows(records):
        found[row[:j] + row[j + 1 :]][row[j]] += 1
    return list(found.values())


def frequency_l(records: Sequence[Record], j: int) -> Fraction:
    """The largest l for which no value makes up more than 1/l of any class."""
    return min(Fraction(group.total(), max(group.values())) for group in classes(records, j))


def entropy_l(records: Sequence[Record], j: int) -> float:
    """The largest l for which the entropy of every class is at least log(l)."""
    return min(
        exp(-sum(n / group.total() * log(n / group.total()) for n in group.values())) for group in classes(records, j)
    )


def expanded_k(records: Sequence[Record], j: int) -> int:
    """The number of rows of the smallest class."""
    return min(group.total() for group in classes(records, j))
