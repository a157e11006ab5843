"""Finds people in a table of generalised values: the groups whose published quasi-identifiers cover a person's own.

Groups may overlap, so several can cover one person; the person's record is then one of all their records, each as
likely as the others. People are handled by distinct quasi-identifiers, and those by distinct sets of groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from noren.engines.kernels import covering_pairs
from noren.engines.records import Records
from noren.ragged import chosen, first_of, in_order, numbered_sets, offsets_of, owners, row_numbers, rows_in_order
from noren.release.published import Published
from noren.schema.nodes import Nodes
from noren.statements import Statement

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
    """Return base values as nodes; their labels are not needed."""
    return Nodes(d, ("",) * d, np.arange(d + 1), np.arange(d), np.arange(1, d + 1))


def sorted_groups(keys: NDArray) -> tuple[NDArray, NDArray[np.int64], NDArray[np.int64]]:
    """Group rows by key: distinct keys, the rows group by group, and the offsets.

    keys: (rows, columns). Without columns all rows form one group.
    """
    order, bounds = rows_in_order([keys[:, c] for c in range(keys.shape[1])], len(keys))
    return (keys[order[bounds[:-1]]] if keys.shape[1] else keys[:1]), order, bounds


class Finder:
    """A table as an adversary searches it: one node per record and quasi-identifier."""

    def __init__(self, nodes: Sequence[Nodes], data: Sequence[NDArray], rows: int) -> None:
        columns = [np.asarray(part) for part in data]
        distinct = [int(np.count_nonzero(np.bincount(column))) for column in columns]
        # the most selective column first: then few blocks of neighbouring groups can hold a person
        self.columns = sorted(range(len(columns)), key=lambda c: -distinct[c])
        self.order, self.bounds = rows_in_order([columns[c] for c in self.columns], rows)
        example = self.order[self.bounds[:-1]]
        keys = _beside([columns[c][example] for c in self.columns], min(rows, 1))
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
        """Return the group of every row."""
        out = np.empty(len(self.order), np.int64)
        out[self.order] = owners(self.bounds)
        return out

    def candidates(self, codes: Sequence[NDArray], people: int) -> Iterator[Matches]:
        """Yield all people that some group covers, some at a time. codes: base values by column, -1 for unknown
        ones."""
        if not self.columns:
            everyone = np.arange(people)
            yield Matches(everyone, np.zeros(people, np.int64), np.ones(1, np.int64), self.order, self.bounds)
            return
        order, bounds = rows_in_order([codes[c] for c in self.columns], people)
        first = order[bounds[:-1]]
        keys = self._numbered([codes[c][first] for c in self.columns])
        for begin in range(0, len(keys), PEOPLE_AT_ONCE):
            end = min(len(keys), begin + PEOPLE_AT_ONCE)
            yield from self._some(keys[begin:end], order, bounds[begin : end + 1])

    def pairs(self, codes: Sequence[NDArray], people: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return every person with every group that covers the person; people with equal codes are equal."""
        groups = len(self.bounds) - 1
        if not self.columns:
            return np.repeat(np.arange(people), groups), np.tile(np.arange(groups), people)
        return self._covering(self._numbered([codes[c] for c in self.columns]))

    def _numbered(self, codes: Sequence[NDArray]) -> NDArray[np.int32]:
        """Return (people, columns): values numbered through all columns; -1 for unknown ones."""
        out = np.empty((len(codes[0]), len(codes)), np.int32)
        for place, (part, base) in enumerate(zip(codes, self.base[:-1], strict=True)):
            out[:, place] = np.where(part < 0, -1, part + base)
        return out

    def _covering(self, keys: NDArray) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        starts, stops = np.concatenate(self.starts), np.concatenate(self.stops)
        nodes, groups = _together(self.nodes)
        people, order = _together(keys)
        who, group = covering_pairs(nodes, self.runs, starts, stops, int(self.base[-1]), people)
        who, group = order[who], groups[group]
        together = in_order(who * np.int64(len(self.bounds)) + group)
        return who[together], group[together]

    def _some(self, keys: NDArray, order: NDArray, bounds: NDArray) -> Iterator[Matches]:
        who, group = self._covering(keys)
        offsets = offsets_of(np.bincount(who, minlength=len(keys)))
        covered = np.flatnonzero(np.diff(offsets))
        if not len(covered):
            return
        lists, entries = chosen(offsets, covered)
        number = numbered_sets(lists, group[entries])
        by_set = in_order(number)
        set_bounds = offsets_of(np.bincount(number))
        example = by_set[set_bounds[:-1]]
        whole = covered[example]
        weight = np.add.reduceat(np.diff(self.bounds)[group], offsets[covered])[example]
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


@dataclass(frozen=True)
class Cover:
    """The classes of a release, and whom each can hold. People who share all quasi-identifiers are one item."""

    table: Records
    """Everybody. Only quasi-identifiers are looked at."""
    row_class: NDArray[np.int64]
    """The class of every published row."""
    first: NDArray[np.int64]
    """A row of every class."""
    item: NDArray[np.int64]
    """The item of every person."""
    names: tuple[str, ...]
    """The columns of listed values, by which people are found."""
    nodes: Sequence[Nodes]
    data: Sequence[NDArray]
    """For each of these what every class publishes, as nodes over its values."""
    codes: NDArray[np.int32]
    """(items, columns): what every item has there; -1 for what no class lists."""
    pair_item: NDArray[np.int64]
    pair_class: NDArray[np.int64]
    """Every item with every class that covers it."""

    @staticmethod
    def find(published: Published, table: Records, quasi: Sequence[Statement]) -> Cover:
        """The classes by these quasi-identifiers as an adversary sees them who knows everybody in the table."""
        row_class = row_classes(published, quasi)
        first = first_of(row_class)
        searched = [one for one in quasi if one.is_key and not one.column.is_open and one.name in table.codes]
        cells = published.cells([one.name for one in searched]) if searched else {}
        nodes = [exact_nodes(one.d) if one.nodes is None else one.nodes for one in searched]
        data = [np.asarray(one.key(cells[one.name]), np.int64)[first] for one in searched]
        finder = Finder(nodes, data, len(first))
        known = [one.name for one in quasi if one.name in table.codes]
        item = row_numbers([table.codes[n] for n in known], [table.columns[n].d for n in known], table.n)
        example = first_of(item)
        codes = [table.published(one, example).astype(np.int32) for one in searched]
        who, group = finder.pairs(codes, len(example))
        lines, at = chosen(finder.bounds, group)  # classes that agree in all columns that cover values
        pair_item = np.repeat(who, np.diff(lines))
        held = _beside(codes, len(example)).astype(np.int32, copy=False)
        names = tuple(one.name for one in searched)
        return Cover(table, row_class, first, item, names, nodes, data, held, pair_item, finder.order[at])

    @property
    def classes(self) -> int:
        return len(self.first)

    @cached_property
    def items(self) -> int:
        return int(self.item.max(initial=-1)) + 1

    @cached_property
    def width(self) -> NDArray[np.float64]:
        """(classes, columns): how many base values the class leaves open."""
        found = [one.sizes[node] for one, node in zip(self.nodes, self.data, strict=True)]
        return _beside(found, self.classes).astype(np.float64)

    @cached_property
    def low(self) -> NDArray[np.int64]:
        """(classes, columns): the least of these values, in the published order."""
        found = [one.starts[one.bounds[node]] for one, node in zip(self.nodes, self.data, strict=True)]
        return _beside(found, self.classes)

    @cached_property
    def high(self) -> NDArray[np.int64]:
        """(classes, columns): the largest of them."""
        found = [one.stops[one.bounds[node + 1] - 1] - 1 for one, node in zip(self.nodes, self.data, strict=True)]
        return _beside(found, self.classes)


def row_classes(published: Published, quasi: Sequence[Statement]) -> NDArray[np.int64]:
    """The class of every row: rows that agree in all these columns as published."""
    cells = published.cells([one.name for one in quasi]) if quasi else {}
    kinds = [cells[one.name].distinct()[1] for one in quasi]
    return row_numbers(kinds, [int(kind.max(initial=0)) + 1 for kind in kinds], published.rows)


def _beside(columns: Sequence[NDArray], rows: int) -> NDArray:
    return np.stack(columns, axis=1) if columns else np.empty((rows, 0), np.int64)


def _together(keys: NDArray) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Sort lines by column, those with the fewest values first; return the original positions."""
    few_first = keys[:, ::-1]
    order = sorted_groups(few_first)[1]
    return np.ascontiguousarray(few_first[order], np.int32), order


def _portions(weight: NDArray) -> Iterator[tuple[int, int]]:
    """Split sets into runs of a limited total number of records."""
    reach = offsets_of(weight)
    low = 0
    while low < len(weight):
        high = int(np.searchsorted(reach, reach[low] + RECORDS_AT_ONCE, side="right")) - 1
        high = max(low + 1, high)
        yield low, high
        low = high
