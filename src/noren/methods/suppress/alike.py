"""Groups whose records have the same term sets: what is found for one of them holds for all, so it is searched once.

A group is compared by its records' term sets, in any order; whose of two equal records stands where is left to the
order in which the records come, which is random where it matters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noren.engines.finding import numbered_sets
from noren.ragged import chosen, offsets_of, ranges, runs

Array = NDArray[np.int64]


@dataclass(frozen=True)
class Alike:
    """Groups by kind. Record i of a group in `order` has the terms of record i of the kind's first group."""

    order: Array
    bounds: Array
    """Where every group begins and ends in `order`."""
    kinds: list[Array]
    """The groups of every kind, in the order of their first ones."""

    def entries(self, group: int, terms: Array) -> tuple[Array, Array]:
        """Where the records' terms begin in one group, and where they lie among all of the table."""
        return chosen(terms, self.order[self.bounds[group] : self.bounds[group + 1]])


def alike(order: Array, bounds: Array, terms: Array, codes: Array) -> Alike:
    """Sort groups order[bounds[g]:bounds[g + 1]] of records with the terms codes[terms[r]:terms[r + 1]] into kinds."""
    sizes = np.diff(bounds)
    offsets, entries = chosen(terms, order)
    own = codes[entries]
    number = numbered_sets(offsets, own - own.min(initial=0))
    group = np.repeat(np.arange(len(sizes)), sizes)
    ranked = np.lexsort((number, group))
    kind = numbered_sets(bounds, number[ranked])
    by_kind = np.argsort(kind, kind="stable")
    parts = np.split(by_kind, runs(kind[by_kind])[1:-1]) if len(kind) else []
    kinds = sorted(parts, key=lambda part: int(part[0]))
    first = np.arange(len(sizes))
    for same in kinds:
        if len(same) > 1:
            first[same] = same[0]
    rank = np.empty(len(order), np.int64)
    rank[ranked] = np.arange(len(order)) - bounds[:-1][group]
    placed = bounds[:-1][group] + rank[ranges(bounds[first], bounds[first] + sizes)]
    return Alike(order[ranked[placed]], bounds, kinds)


def of_groups(order: Array, bounds: Array, todo: Array) -> tuple[Array, Array]:
    """The records of some groups alone, and where each group begins and ends among them."""
    return order[ranges(bounds[todo], bounds[todo + 1])], offsets_of(np.diff(bounds)[todo])
