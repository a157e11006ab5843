"""A table cut into parts, each decided by itself, where all of it does not fit the machine that decides.

What a method says of a part is told by the different pairs of a true code and a published value: a few thousand of
them say for a million records what general values there are and whether each covers its truth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from noren.engines.plan import Plan, Recode, Treatment
from noren.engines.records import RandomOrder, Records
from noren.schema.column import Column
from noren.schema.nodes import Nodes, Tight


@dataclass(frozen=True)
class Cuts:
    """Nested cuts: step i asks on which side of `bounds[i]` a record lies in column `axes[i]` and goes on to one of
    two other steps; a negative one, ~p, is part p. Without steps all are one part."""

    names: tuple[str, ...] = ()
    ranks: tuple[NDArray[np.int32], ...] = ()
    """Where every code of a column stands in the order by which it is cut."""
    axes: tuple[int, ...] = ()
    bounds: tuple[int, ...] = ()
    ways: tuple[tuple[int, int], ...] = ()
    """Where those go that lie below the bound, and the others."""
    parts: int = 1

    def parts_of(self, codes: Mapping[str, NDArray], records: int) -> NDArray[np.int64]:
        """The part of every record."""
        places = [rank[codes[name]] for name, rank in zip(self.names, self.ranks, strict=True)]
        out = np.zeros(records, np.int64)
        waiting = [(0, np.arange(records))] if self.axes else []
        while waiting:
            step, rows = waiting.pop()
            if step < 0:
                out[rows] = ~step
                continue
            low = places[self.axes[step]][rows] < self.bounds[step]
            waiting += [(self.ways[step][0], rows[low]), (self.ways[step][1], rows[~low])]
        return out

    def joined(self, part: int) -> tuple[Cuts, NDArray[np.int64]]:
        """The same without the cut that made this part, nor any below that; and the new number of every part."""
        above = next(step for step, ways in enumerate(self.ways) if ~part in ways)
        gone, waiting = set(), [above]
        while waiting:
            step = waiting.pop()
            gone.add(step)
            waiting += [way for way in self.ways[step] if way >= 0]
        lost = {~way for step in gone for way in self.ways[step] if way < 0}
        kept = [old for old in range(self.parts) if old not in lost]
        number = np.full(self.parts, len(kept), np.int64)
        number[kept] = np.arange(len(kept))
        left = [step for step in range(len(self.axes)) if step not in gone]
        place = {old: new for new, old in enumerate(left)} | {above: ~len(kept)}
        ways = [tuple(place[way] if way >= 0 else ~int(number[~way]) for way in self.ways[step]) for step in left]
        axes, bounds = tuple(self.axes[s] for s in left), tuple(self.bounds[s] for s in left)
        return Cuts(
            self.names, self.ranks, axes, bounds, tuple((low, high) for low, high in ways), len(kept) + 1
        ), number


@dataclass(frozen=True)
class Pairs:
    """The different (true code, published value) pairs of a column in a part."""

    code: NDArray
    value: NDArray[np.int64]
    """A node; the code itself where the column is published as it is."""
    times: NDArray[np.int64]
    """How many records have the pair."""
    nodes: Nodes | None = None
    tight: Tight | None = None

    @classmethod
    def of(cls, codes: NDArray, treatment: Treatment) -> tuple[Pairs, NDArray[np.uint32]]:
        """The pairs of some records, and every record's place among them."""
        plain = codes.astype(np.int64)
        if not isinstance(treatment, Recode):
            keys, place, times = np.unique(plain, return_inverse=True, return_counts=True)
            return cls(keys.astype(codes.dtype), keys, times), place.reshape(-1).astype(np.uint32)
        size = len(treatment.nodes)
        keys, place, times = np.unique(plain * size + treatment.data, return_inverse=True, return_counts=True)
        pairs = cls((keys // size).astype(codes.dtype), keys % size, times, treatment.nodes, treatment.tight)
        return pairs, place.reshape(-1).astype(np.uint32)


@dataclass(frozen=True)
class PartFound:
    """What was decided of a part."""

    records: int
    pairs: Mapping[str, Pairs]
    notes: Sequence[str] = ()
    figures: Mapping[str, float] = field(default_factory=dict)
    """What it costs, by metric; means over records."""


class PartDecision(Protocol):
    """What decides about a part; may travel."""

    @property
    def columns(self) -> Mapping[str, Column]:
        """The columns that it sees."""

    def __call__(self, codes: Mapping[str, NDArray], order: RandomOrder) -> tuple[PartFound, Mapping[str, NDArray]]:
        """What is decided of the records with these codes, and every record's place among the pairs."""


class Elsewhere(Protocol):
    """Machines that decide about parts of a table."""

    @property
    def room(self) -> int:
        """The bytes that a decision may take on the machine that asks."""

    @property
    def rows_apart(self) -> int:
        """How many records a part should have at most."""

    def fits(self, needed: int) -> bool:
        """Whether so many bytes may be taken here."""

    def fits_part(self, needed: int) -> bool:
        """Whether so many bytes may be taken where a part is decided."""

    def part_counts(
        self, source: Any, reading: Any, cuts: Cuts, names: Sequence[str]
    ) -> tuple[NDArray[np.int64], dict[str, NDArray[np.int64]]]:
        """How many records every part has, and for some columns (parts, values) how many have each value."""

    def decided(self, source: Any, reading: Any, cuts: Cuts, decide: PartDecision) -> Decided:
        """All parts, decided. `reading` is all that will be published."""


class Decided(Protocol):
    """Parts that an engine holds, decided and not yet published."""

    found: Sequence[PartFound]

    def sampled(self, most: int) -> tuple[Mapping[str, NDArray], NDArray[np.int64], NDArray[np.int64]]:
        """About so many records by chance: codes of columns that pass, places among the pairs of those decided; their
        parts, and their numbers in the table."""

    @property
    def forget(self) -> Callable[[], Any]:
        """Lets go of what is held."""


def joined_pairs(found: Sequence[Pairs], column: Column) -> tuple[Recode | None, NDArray, list[NDArray[np.int64]]]:
    """One treatment of the pairs of all parts, their codes, and of every part the places of its pairs among them.

    General values of different parts that are the same are one.
    """
    known: dict[Any, int] = {}
    keys, codes = [], []
    for one in found:
        values = one.value
        if one.nodes is not None:
            values = _numbered(one.nodes, known)[one.value]
        keys.append(values)
        codes.append(one.code.astype(np.int64))
    flat = np.concatenate(keys) * np.int64(column.d) + np.concatenate(codes)
    every, place = np.unique(flat, return_inverse=True)
    places = np.split(place.reshape(-1), np.cumsum([len(part) for part in keys])[:-1])
    code = (every % column.d).astype(found[0].code.dtype)
    if found[0].nodes is None:
        return None, code, places
    labels, runs = zip(*known, strict=True)
    tight = found[0].tight if len({one.tight for one in found}) == 1 else None
    return Recode(Nodes.from_runs(column.d, labels, runs), every // column.d, tight), code, places


def _numbered(nodes: Nodes, known: dict[Any, int]) -> NDArray[np.int64]:
    """The number of every node among all that are known by now."""
    keys = zip(nodes.labels, map(tuple, nodes.runs), strict=True)
    return np.array([known.setdefault(key, len(known)) for key in keys], np.int64)


def told_pairs(
    plan: Plan, records: Records, names: Sequence[str]
) -> tuple[dict[str, Pairs], dict[str, NDArray[np.uint32]]]:
    """The pairs of every column that a method saw, and the places of all records among them."""
    pairs, places = {}, {}
    for name in names:
        pairs[name], places[name] = Pairs.of(records.codes[name], plan.of(name))
    return pairs, places


def of_parts(tables: Sequence[NDArray], part: NDArray, place: NDArray) -> NDArray:
    """What stands in the table of every record's part at the record's place."""
    out = np.empty(len(part), tables[0].dtype)
    for one in np.unique(part).tolist():
        rows = part == one
        out[rows] = tables[one][place[rows]]
    return out
