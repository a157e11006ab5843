"""Where the work runs. An engine reads a table, applies a plan to it, and judges what was published.

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

from noren.engines.apart import Elsewhere
from noren.engines.profile import Profile
from noren.models.judgement import Judgement
from noren.models.verdict import Verdict
from noren.progress import Meter, silent
from noren.release.parts import Part
from noren.release.published import Published
from noren.schema.domain import Domain
from noren.schema.kinds import Format
from noren.secret import Keystream
from noren.sources.place import Spot
from noren.sources.source import Source, Writing
from noren.statements import CellBatch, OpenCells, Statement, TermCells


@dataclass(frozen=True)
class Reading:
    """What to read of a table, and as what: codes into domains, texts as they are, sets of terms."""

    domains: Mapping[str, Domain] = field(default_factory=dict)
    terms: Mapping[str, Domain] = field(default_factory=dict)
    open: Sequence[str] = ()
    drop: Sequence[str] = ()
    """Columns whose missing cells cost the record its place."""
    key: str | None = None
    """The column that names a person, where record keys are wanted."""

    @property
    def columns(self) -> list[str]:
        """All columns that must be read."""
        key = [] if self.key is None else [self.key]
        return list(dict.fromkeys([*self.domains, *self.open, *self.terms, *self.drop, *key]))


@dataclass(frozen=True)
class CodeBatch:
    """A run of records as codes. `keys` are the record keys, where asked for."""

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
    key: str | None = None
    identifiers: Sequence[str] = ()
    """Columns that name people: only whether they repeat is counted."""


Apply = Callable[[CodeBatch], CellBatch]
"""What is published instead of a run of records."""


class Portable(Protocol):
    """What is published instead of records, for engines that work elsewhere."""

    def __call__(self, batch: CodeBatch) -> CellBatch: ...

    @property
    def stream(self) -> Any:
        """The keys that draw, as they may travel: whoever has them draws the same."""

    @property
    def shared(self) -> Any:
        """What is published instead of any records, without keys, where it is the same for all of them; else None."""

    def part(self, start: int, stop: int) -> Any:
        """The same of the records from `start` to `stop`. `.under(stream)` is an `Apply`, which counts in `drawn`."""

    def take_in(self, drawn: Any) -> None:
        """Count what a part has drawn."""


@dataclass(frozen=True)
class Written:
    """Data files that an engine wrote itself, in the order in which they continue each other."""

    files: tuple[Spot, ...]
    parts: tuple[Part, ...]
    rows: int
    columns: tuple[Statement, ...]
    """The columns as they were written."""


class Engine(Protocol):
    """Verbs over a table, wherever it lies."""

    @property
    def elsewhere(self) -> Elsewhere | None:
        """Where parts of a table are decided that does not fit the machine that decides; None where nowhere else."""

    def opened(self, data: Any, writing: Writing) -> Source:
        """Where a table is read from."""

    def held(self, source: Source, data: Any) -> Source:
        """The source as it is read again and again."""

    def demand_room(self, needed: int, what: str) -> None:
        """Refuse what does not fit the machine that decides: so many bytes for this."""

    def profile(
        self,
        source: Source,
        counting: Counting,
        *,
        on_keys: Callable[[Any], None] | None = None,
        on_records: Callable[[Any], None] | None = None,
        meter: Meter = silent,
    ) -> Profile:
        """Count the values of every column. `on_keys` sees the record keys; a part of a table may be empty.

        `on_records` sees all records that are not dropped, in the table's order, or none where they lie elsewhere.
        """

    def encoded(self, source: Source, reading: Reading, *, meter: Meter = silent) -> Iterator[CodeBatch]:
        """The records as codes, in the table's order. Terms without a place in their domain are left out."""

    def histogram(
        self, source: Source, reading: Reading, names: Sequence[str]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The different combinations of some coded columns, one row each, ascending, and how often each occurs."""

    def apply(self, source: Source, reading: Reading, apply: Apply, *, meter: Meter = silent) -> Iterator[CellBatch]:
        """What is published instead of all records, in any order."""

    def written(
        self, source: Source, reading: Reading, making: Portable, rows: int, columns: Sequence[Statement], folder: Spot
    ) -> Written | None:
        """Apply, scatter and write to the folder where the records are; None where cells come through here instead."""

    def scatter(
        self, batches: Iterable[CellBatch], rows: int, stream: Keystream, folder: Path | None
    ) -> Iterator[CellBatch]:
        """The same rows in one uniformly random order: all are read before the first comes. Only what will be
        published goes to the folder."""

    def judge(self, published: Published, make: Callable[[], Judgement], *, meter: Meter = silent) -> list[Verdict]:
        """Judge all cells of a published table. `make` gives judgements that merge."""
