"""Finding people in a table of general values: the groups whose published quasi-identifiers cover a person's own.

Groups may overlap, so several can cover one person; the person's record is then one of all their records, each as
likely as the others. People are handled by distinct quasi-identifiers, and those by distinct sets of groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from noren.ragged import chosen, offsets_of, owners, row_numbers, runs
from noren.schema.nodes import Nodes

PEOPLE_AT_ONCE = 1 << 16
RECORDS_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class Matches:
    """Some people, and for each the set of records that could be theirs: order[bounds[s]:bounds[s + 1]]."""

    people: NDArray[np.int64]
    of: NDArray[np.int64]
    """The set of each of these people."""
    groups: NDArray[np.int64]
    """How many groups every set is made of."""
    order: NDArray[np.int64]
    bounds: NDArray[np.int64]


def exact_nodes(d: int) -> Nodes:
    """Base values as nodes of their own; their labels are not needed."""
    return Nodes(d, ("",) * d, np.arange(d + 1), np.arange(d), np.arange(1, d + 1))


def sorted_groups(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Rows with equal keys together: distinct keys, the rows group by group, and where each group begins.

    keys: (rows, columns). Without columns all rows form one group.
    """
    if not keys.shape[1]:
        return keys[:1], np.arange(len(keys)), np.array([0, len(keys)])
    least = keys.min(axis=0, initial=0)
    columns = [keys[:, c] - least[c] for c in range(keys.shape[1])]
    number = row_numbers(columns, [int(column.max(initial=0)) + 1 for column in columns], len(keys))
    order = np.argsort(number, kind="stable").astype(np.int64)
    bounds = runs(number[order])
    return keys[order[bounds[:-1]]], order, bounds


def numbered_sets(offsets: NDArray[np.int64], data: NDArray) -> NDArray[np.int64]:
    """One number for equal lists data[offsets[i]:offsets[i + 1]], from 0 on; read element by element, all at once."""
    sizes = np.diff(offsets)
    out = np.zeros(len(sizes), np.int64)
    width, taken = int(data.max(initial=0)) + 1, 1
    for place in range(int(sizes.max(initial=0))):
        longer = np.flatnonzero(sizes > place)
        key = out[longer] * width + data[offsets[longer] + place]
        distinct, number = np.unique(key, return_inverse=True)
        out[longer] = taken + number.reshape(-1)
        taken += len(distinct)
    return np.unique(out, return_inverse=True)[1].reshape(-1).astype(np.int64)


class Finder:
    """A table as an adversary searches it: one node per record and quasi-identifier."""

    def __init__(self, nodes: Sequence[Nodes], data: Sequence[NDArray], rows: int) -> None:
        columns = [part.astype(np.int64) for part in data]
        stacked = np.stack(columns, axis=1) if columns else np.empty((rows, 0), np.int64)
        distinct = [len(np.unique(column)) for column in columns]
        # the most selective column first: then few blocks of neighbouring groups can hold a person
        self.columns = sorted(range(len(columns)), key=lambda c: -distinct[c])
        keys, self.order, self.bounds = sorted_groups(stacked[:, self.columns])
        shift = offsets_of([len(nodes[c]) for c in self.columns])
        self.base = offsets_of([nodes[c].d for c in self.columns])
        self.nodes = keys + shift[:-1] if self.columns else keys
        bounds, self.starts, self.stops, begun = [np.zeros(1, np.int64)], [], [], 0
        for c, first in zip(self.columns, self.base[:-1].tolist(), strict=True):
            bounds.append(nodes[c].bounds[1:] + begun)
            self.starts.append(nodes[c].starts + first)
            self.stops.append(nodes[c].stops + first)
            begun += len(nodes[c].starts)
        self.runs = np.concatenate(bounds).astype(np.int64)

    @property
    def class_of(self) -> NDArray[np.int64]:
        """The group of every row."""
        out = np.empty(len(self.order), np.int64)
        out[self.order] = owners(self.bounds)
        return out

    def candidates(self, codes: Sequence[NDArray], people: int) -> Iterator[Matches]:
        """All people that some group covers, some at a time. codes: base values by column, -1 for unknown ones."""
        if not self.columns:
            everyone = np.arange(people)
            yield Matches(everyone, np.zeros(people, np.int64), np.ones(1, np.int64), self.order, self.bounds)
            return
        stacked = np.stack([codes[c].astype(np.int64) for c in self.columns], axis=1)
        keys, order, bounds = sorted_groups(stacked)
        keys = np.where(keys < 0, -1, keys + self.base[:-1])
        for begin in range(0, len(keys), PEOPLE_AT_ONCE):
            end = min(len(keys), begin + PEOPLE_AT_ONCE)
            yield from self._some(keys[begin:end], order, bounds[begin : end + 1])

    def pairs(self, codes: Sequence[NDArray], people: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Every person with every group that covers the person, by person; for people told apart by their codes."""
        groups = len(self.bounds) - 1
        if not self.columns:
            return np.repeat(np.arange(people), groups), np.tile(np.arange(groups), people)
        stacked = np.stack([codes[c].astype(np.int64) for c in self.columns], axis=1)
        return self._covering(np.where(stacked < 0, -1, stacked + self.base[:-1]))

    def _covering(self, keys: NDArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        from noren.kernels.linking_attack import covering_pairs

        starts, stops = np.concatenate(self.starts), np.concatenate(self.stops)
        few_first = np.arange(len(self.columns))[::-1]  # people who begin alike stand together
        order = sorted_groups(keys[:, few_first])[1]
        nodes, keys = np.ascontiguousarray(self.nodes[:, few_first]), np.ascontiguousarray(keys[order][:, few_first])
        who, group = covering_pairs(nodes, self.runs, starts, stops, int(self.base[-1]), keys)
        who = order[who]
        together = np.argsort(who * np.int64(len(self.bounds)) + group)
        return who[together].astype(np.int64), group[together].astype(np.int64)

    def _some(self, keys: NDArray, order: NDArray, bounds: NDArray) -> Iterator[Matches]:
        who, group = self._covering(keys)
        offsets = offsets_of(np.bincount(who, minlength=len(keys)))
        covered = np.flatnonzero(np.diff(offsets))
        if not len(covered):
            return
        lists, entries = chosen(offsets, covered)
        number = numbered_sets(lists, group[entries])
        example = np.unique(number, return_index=True)[1]
        whole = covered[example]
        weight = np.add.reduceat(np.diff(self.bounds)[group], offsets[covered])[example]
        by_set = np.argsort(number, kind="stable")
        set_bounds = offsets_of(np.bincount(number))
        for low, high in _portions(weight):
            groups, entries = chosen(offsets, whole[low:high])
            rows = covered[by_set[set_bounds[low] : set_bounds[high]]]
            people, records = chosen(bounds, rows)[1], chosen(self.bounds, group[entries])[1]
            of = owners(set_bounds[low : high + 1])
            yield Matches(
                order[people],
                np.repeat(of, np.diff(bounds)[rows]),
                np.diff(groups),
                self.order[records],
                offsets_of(weight[low:high]),
            )


def _portions(weight: NDArray) -> Iterator[tuple[int, int]]:
    """Runs of sets that together hold not many more records than may be looked at at once."""
    reach = offsets_of(weight)
    low = 0
    while low < len(weight):
        high = int(np.searchsorted(reach, reach[low] + RECORDS_AT_ONCE, side="right")) - 1
        high = max(low + 1, high)
        yield low, high
        low = high
