"""What one pass over a table learns: which values occur, how often, and what is missing. Profiles of parts merge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from noren.errors import DataError

OPEN_LIMIT = 100_000
"""A column with more distinct values than this has an open domain: its values are never listed."""


@dataclass
class ValueCounts:
    """How often each text of a column occurs; an open column has too many to be counted."""

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
        """Count what another part of the table holds."""
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
        """The columns that name people."""
        return list(dict.fromkeys([*self.hashes, *self.told]))

    def distinct(self, name: str) -> int:
        """How many different cells a column that names people has."""
        if name in self.told:
            return self.told[name][0]
        parts = self.hashes.get(name, [])
        return len(np.unique(np.concatenate(parts))) if parts else 0

    def cells(self, name: str) -> int:
        """How many cells a column that names people has, but for missing ones."""
        return self.told[name][1] if name in self.told else sum(map(len, self.hashes[name]))

    def demand(self, name: str, terms: Sequence[str] = ()) -> None:
        """Refuse a table without records, and sets of terms that are free text. A part of a table may be empty."""
        if self.records == 0:
            why = "every record was dropped for a missing value" if self.dropped else "it has a header but no rows"
            raise DataError(f"{name}: no records: {why}.", hint="Give a table with at least one record.")
        for column in terms:
            if self.columns[column].is_open:
                raise DataError(
                    f"column {column!r} has more than {OPEN_LIMIT:,} different terms.",
                    hint="Is it free text? Give the separator of its terms, or leave it out.",
                )

    def merge(self, other: Profile) -> None:
        """Take in the profile of another part of the table."""
        for name, parts in other.hashes.items():
            self.hashes.setdefault(name, []).extend(parts)
        self.records += other.records
        self.dropped += other.dropped
        for name, column in self.columns.items():
            column.merge(other.columns[name])
