"""How published cells are made of a run of records: of all of a table, or of the part that another machine has.

Whatever is needed stands here and nothing else of the table does, so that a part of it can travel. Cells that a method
decided record by record are taken by the record's number; the others follow from the record's own codes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from threading import Lock
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.designs import draw_columns
from noren.engines import CodeBatch
from noren.secret import Keystream, RecordStream
from noren.secret.streams import numbered_digests
from noren.statements import CellBatch, Cells, CodeCells, Design, take
from noren.statements.batch import PERSON


@dataclass
class Drawn:
    """How often the truth was in its set, how often the design lets one expect it, and how long drawing took."""

    heads: dict[str, int] = field(default_factory=dict)
    expected: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0

    def add(self, other: Drawn) -> None:
        """Take in what another part came to."""
        self.seconds += other.seconds
        for name, count in other.heads.items():
            self.heads[name] = self.heads.get(name, 0) + count
            self.expected[name] = self.expected.get(name, 0.0) + other.expected[name]


@dataclass
class Making:
    """What is published instead of the records from `start` on."""

    columns: tuple[str, ...]
    sizes: Mapping[str, int]
    """How many values the published domain of every listed column has."""
    designs: Mapping[str, Design]
    cells: Mapping[str, Cells]
    """The cells of all these records, for columns that a method decided record by record."""
    places: Mapping[str, NDArray]
    """Where codes stand in the published domain, for columns that do not publish all their values."""
    keep: NDArray[np.bool_] | None
    """Which of these records are published; None for all."""
    people: NDArray[np.int64] | None
    randomness: Keystream | RecordStream | None
    """None where it comes another way."""
    keyed: bool
    """Whether the record key decides what is drawn."""
    exploded: tuple[str, ...] = ()
    """Columns whose sets are published member by member."""
    start: int = 0
    persons: int = 0
    """How many numbers of people there may be."""
    drawn: Drawn = field(default_factory=Drawn)
    _lock: Any = field(default_factory=Lock, repr=False, compare=False)

    def part(self, start: int, stop: int) -> Making:
        """What is published of some records, without the keys that draw."""
        rows = slice(start, stop)
        return replace(
            self,
            cells={name: cells.take(rows) for name, cells in self.cells.items()},
            keep=None if self.keep is None else self.keep[rows],
            people=None if self.people is None else self.people[rows],
            randomness=None,
            start=start,
            drawn=Drawn(),
            _lock=Lock(),
        )

    @property
    def is_alike(self) -> bool:
        """Whether nothing was decided record by record."""
        return not self.cells and self.keep is None and self.people is None

    def under(self, stream: RecordStream) -> Making:
        """The same, drawn by a stream."""
        return replace(self, randomness=stream, drawn=Drawn(), _lock=Lock())

    def __call__(self, batch: CodeBatch) -> CellBatch:
        first, rows = batch.start - self.start, np.arange(batch.records)
        rows = rows if self.keep is None else rows[self.keep[first : first + batch.records]]
        out = self.of_records(batch, self.columns, rows, rows + batch.start)
        return exploded(out, self.exploded, self.designs) if self.exploded else out

    def of_records(
        self, batch: CodeBatch, names: Sequence[str], rows: NDArray[np.int64], at: NDArray[np.int64]
    ) -> dict[str, Cells]:
        """What is published of some records of a batch; `at` are their numbers in the table."""
        sets = self._draw(batch, rows, at) if any(name in self.designs for name in names) else {}
        out: dict[str, Cells] = {}
        for name in names:
            if name in self.cells:
                out[name] = self.cells[name].take(at - self.start)
            elif name in sets:
                out[name] = sets[name]
            elif name in batch.open:
                out[name] = batch.open[name].take(rows)
            else:
                codes, place = batch.codes[name][rows], self.places.get(name)
                out[name] = CodeCells(self.sizes[name], codes if place is None else place[codes])
        if self.people is not None:
            out[PERSON] = CodeCells(self.persons, self.people[at - self.start])
        return out

    def _draw(self, batch: CodeBatch, rows: NDArray[np.int64], at: NDArray[np.int64]) -> Mapping[str, Cells]:
        if not self.designs:
            return {}
        started = perf_counter()
        assert self.randomness is not None, "drawing needs keys"
        codes = {name: batch.codes[name] for name in self.designs}
        digests = self._digests(batch, rows, at)
        if len(rows) < batch.records:
            codes = {name: array[rows] for name, array in codes.items()}
        sets = draw_columns(self.designs, codes, self.randomness, digests=digests)
        found = Drawn()
        for name, cells in sets.items():
            found.heads[name] = int(cells.contains(codes[name]).sum())
            found.expected[name] = self.designs[name].expected_inside(codes[name])
        found.seconds = perf_counter() - started
        with self._lock:
            self.drawn.add(found)
        return sets

    def _digests(self, batch: CodeBatch, rows: NDArray[np.int64], at: NDArray[np.int64]) -> NDArray | None:
        """What keys the draws of every record: its person, so that a person's rows with one value have one set; else
        its key, or where draws must be repeatable its number."""
        if not isinstance(self.randomness, RecordStream):
            return None
        if self.keyed:
            return self.randomness.digests(batch.keys)[rows]
        return numbered_digests(at if self.people is None else self.people[at - self.start])

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _lock=Lock())


def exploded(batch: CellBatch, names: Sequence[str], designs: Mapping[str, Design]) -> dict[str, Cells]:
    """One row per combination of members of each record's sets, without any number that would tie the rows together."""
    n, each = len(batch[names[0]]), prod(designs[name].eta for name in names)
    out = take({other: cells for other, cells in batch.items() if other not in names}, np.repeat(np.arange(n), each))
    inner = 1
    for name in reversed(names):
        eta = designs[name].eta
        codes = np.repeat(batch[name].codes(eta), inner, axis=1)  # type: ignore[attr-defined]
        inner *= eta
        out[name] = CodeCells(designs[name].d, np.tile(codes, each // inner).ravel())
    return {column: out[column] for column in batch}
