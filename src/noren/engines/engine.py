"""The engine protocol: an engine reads a table, applies a plan to it, and checks the published table.

A method asks for summaries (counts of values, histograms of tuples) or, where it must, for all codes; it never asks
which engine it runs on. What an engine does part by part (profiles, judgements) merges, so that the batches of
one machine and the partitions of many come to the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from noren.errors import DataError
from noren.models.base import Judgement
from noren.models.verdict import Verdict
from noren.progress import Meter, silent
from noren.release.published import Published
from noren.release.store import Part
from noren.schema.domain import Domain
from noren.schema.kinds import Format
from noren.secret import Keystream
from noren.sources.place import Spot
from noren.sources.source import Source, Writing
from noren.statements import CellBatch, OpenCells, Statement, TermCells

# ---------------------------------------------------------------------- what one pass learns
#
# What one pass over a table learns: which values occur, how often, and what is missing. Profiles of parts merge.

OPEN_LIMIT = 100_000
"""A column with more distinct values than this has an open domain: its values are never listed."""


@dataclass
class ValueCounts:
    """The counts of the texts of a column; an open column has too many to be counted."""

    name: str
    counts: dict[str, int] = field(default_factory=dict)
    missing: int = 0
    outside: int = 0
    """Cells that lie outside the declared bins."""
    is_open: bool = False
    not_numeric: bool = False
    """Whether a column with bins holds something that is not a number."""

    def add(self, counts: Mapping[str, int]) -> None:
        """Count more texts, unless there are too many already."""
        if self.is_open:
            return
        for label, count in counts.items():
            self.counts[label] = self.counts.get(label, 0) + count
        if len(self.counts) > OPEN_LIMIT:
            self.is_open = True
            self.counts.clear()

    def merge(self, other: ValueCounts) -> None:
        """Add the counts of another part of the table."""
        if other.is_open:
            self.is_open = True
            self.counts.clear()
        self.add(other.counts)
        self.missing += other.missing
        self.outside += other.outside
        self.not_numeric = self.not_numeric or other.not_numeric


@dataclass
class Profile:
    """What is known about a table after one pass."""

    records: int
    dropped: int
    """Records left out because a value is missing that the policy does not do without."""
    columns: dict[str, ValueCounts]
    hashes: dict[str, list[NDArray[np.uint64]]] = field(default_factory=dict)
    """Hashes of the cells of columns that name people, as they come."""
    told: dict[str, tuple[int, int]] = field(default_factory=dict)
    """How many different cells such a column has and how many in all, where an engine has counted that itself."""

    @property
    def identifiers(self) -> list[str]:
        """Return the columns that name people."""
        return list(dict.fromkeys([*self.hashes, *self.told]))

    def distinct(self, name: str) -> int:
        """Return the number of distinct cells of a column that names people."""
        if name in self.told:
            return self.told[name][0]
        parts = self.hashes.get(name, [])
        return len(np.unique(np.concatenate(parts))) if parts else 0

    def cells(self, name: str) -> int:
        """Return the number of nonmissing cells of a column that names people."""
        return self.told[name][1] if name in self.told else sum(map(len, self.hashes[name]))

    def demand(self, name: str, terms: Sequence[str] = ()) -> None:
        """Raise if a table has no records, or if terms are free text. A part of a table may be empty."""
        if self.records == 0:
            why = (
                "every record was dropped because of a missing value" if self.dropped else "it has a header but no rows"
            )
            raise DataError(f"{name}: no records: {why}.", hint="Give a table with at least one record.")
        for column in terms:
            if self.columns[column].is_open:
                raise DataError(
                    f"column {column!r} has more than {OPEN_LIMIT:,} different terms.",
                    hint="Give the separator of its terms, or drop the column if it is free text.",
                )

    def merge(self, other: Profile) -> None:
        """Add the profile of another part of the table."""
        for name, parts in other.hashes.items():
            self.hashes.setdefault(name, []).extend(parts)
        self.records += other.records
        self.dropped += other.dropped
        for name, column in self.columns.items():
            column.merge(other.columns[name])


@dataclass(frozen=True)
class Reading:
    """What to read of a table, and how: codes, unchanged texts, or sets of terms."""

    domains: Mapping[str, Domain] = field(default_factory=dict)
    terms: Mapping[str, Domain] = field(default_factory=dict)
    open: Sequence[str] = ()
    drop: Sequence[str] = ()
    """Columns whose missing cells cost the record its place."""
    key: str | None = None
    """The column that names a person, where record keys are wanted."""

    @property
    def columns(self) -> list[str]:
        """Return all columns that must be read."""
        key = [] if self.key is None else [self.key]
        return list(dict.fromkeys([*self.domains, *self.open, *self.terms, *self.drop, *key]))


@dataclass(frozen=True)
class CodeBatch:
    """A run of records as codes. `keys` are the record keys, if requested."""

    codes: Mapping[str, NDArray]
    open: Mapping[str, OpenCells]
    terms: Mapping[str, TermCells]
    keys: Any
    records: int
    start: int
    """How many records of the table come before these."""


@dataclass(frozen=True)
class Counting:
    """What to count in the first pass."""

    columns: Sequence[str]
    bins: Mapping[str, Sequence[float]] = field(default_factory=dict)
    formats: Mapping[str, Format] = field(default_factory=dict)
    """How columns with bins write their numbers, where that is not 1234.5."""
    terms: Sequence[str] = ()
    drop: Sequence[str] = ()
    identifiers: Sequence[str] = ()
    """Columns that name people: only whether they repeat is counted."""


Apply = Callable[[CodeBatch], CellBatch]
"""What is published instead of a run of records."""


class Portable(Protocol):
    """A protocol for distributed engines: makes the published cells."""

    def __call__(self, batch: CodeBatch) -> CellBatch: ...

    @property
    def stream(self) -> Any:
        """Return the keys of draws in a form that can be sent; whoever has them draws the same."""

    @property
    def shared_maker(self) -> Any:
        """Return the maker of cells without keys, if it is the same for all records; otherwise None."""

    def part(self, start: int, stop: int) -> Any:
        """Return the maker for the records from `start` to `stop`. `.under(stream)` is an `Apply`, which counts in
        `drawn`."""

    def take_in(self, drawn: Any) -> None:
        """Add the counts of a part's draws."""


@dataclass(frozen=True)
class Written:
    """Data files that an engine wrote itself, in order."""

    files: tuple[Spot, ...]
    parts: tuple[Part, ...]
    rows: int
    columns: tuple[Statement, ...]
    """The columns as they were written."""


class Engine(Protocol):
    """The operations on a table, on one machine or a cluster."""

    def opened(self, data: Any, writing: Writing) -> Source:
        """Return the source of a table."""

    def held(self, source: Source, data: Any) -> Source:
        """Return the source in a form that can be read repeatedly."""

    def demand_room(self, needed: int, what: str) -> None:
        """Raise if this number of bytes does not fit the machine that runs the method."""

    def profile(
        self,
        source: Source,
        counting: Counting,
        *,
        meter: Meter = silent,
    ) -> Profile:
        """Count the values of every column; a part of a table may be empty."""

    def encoded(self, source: Source, reading: Reading, *, meter: Meter = silent) -> Iterator[CodeBatch]:
        """Yield the records as codes, in the table's order. Terms outside their domain are dropped."""

    def histogram(
        self, source: Source, reading: Reading, names: Sequence[str]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Count the distinct combinations of some coded columns, in ascending order."""

    def apply(self, source: Source, reading: Reading, apply: Apply, *, meter: Meter = silent) -> Iterator[CellBatch]:
        """Yield the published cells of all records, in any order."""

    def written(
        self, source: Source, reading: Reading, making: Portable, rows: int, columns: Sequence[Statement], folder: Spot
    ) -> Written | None:
        """Apply, shuffle and write on the cluster; None if cells come through this machine."""

    def scatter(
        self, batches: Iterable[CellBatch], rows: int, stream: Keystream, folder: Path | None
    ) -> Iterator[CellBatch]:
        """Return the same rows in uniformly random order, after reading all of them. Only published cells are written
        to the folder."""

    def judge(self, published: Published, make: Callable[[], Judgement], *, meter: Meter = silent) -> list[Verdict]:
        """Check all cells of a published table. `make` returns judgements that can be merged."""
