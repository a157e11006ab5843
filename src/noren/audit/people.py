"""The original beside a release: the values of every person, and the person's published row.

It is prepared and read once for all attacks of a case. Nothing of it may leave the holder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from noren.audit.base import Case, Lines
from noren.engines import Table
from noren.engines.records import QUASI, Records, translate_codes
from noren.errors import DataError, QueryError, list_columns
from noren.ragged import row_numbers
from noren.release.published import Published
from noren.sources.source import Source
from noren.statements import CodeCells, OpenCells, Statement
from noren.statements.terms import present
from noren.statements.texts import as_dictionary
from noren.workflow.prepare import prepare

if TYPE_CHECKING:
    import polars as pl

NOT_THIS_TABLE = "Give the table and the policy that the release was made from."
Texts = tuple[tuple[str, ...], NDArray[np.int64]]
"""The different texts of a column, and which of them every person has (-1: missing)."""


def read_texts(source: Source, names: Sequence[str]) -> dict[str, Texts]:
    """Columns of a table as they stand."""
    known: dict[str, dict[str, int]] = {name: {} for name in names}
    found: dict[str, list[NDArray[np.int64]]] = {name: [np.zeros(0, np.int64)] for name in names}
    for batch in source.batches(list(names)):
        for name, index in known.items():
            texts, positions = as_dictionary(batch.column(name), name)
            place = [index.setdefault(str(text), len(index)) for text in texts.to_pylist()]
            found[name].append(np.array([*place, -1], np.int64)[positions])
    return {name: (tuple(index), np.concatenate(found[name])) for name, index in known.items()}


@dataclass(frozen=True)
class People:
    """The people of the original in its order, apart from those that the policy drops for missing values."""

    table: Table
    codes: Mapping[str, NDArray]
    """What everybody has, as codes of the table's domains, for every listed column that the release publishes."""
    open: Mapping[str, OpenCells]
    """The same for columns whose values are not listed."""
    _read: dict[str, Texts] = field(default_factory=dict, repr=False, compare=False)

    @property
    def n(self) -> int:
        return self.table.n

    @property
    def records(self) -> Records:
        """Return all people as a method sees them."""
        return self.table.records

    @property
    def quasi(self) -> tuple[str, ...]:
        return tuple(name for name in self.table.deciding if self.table.columns[name].role in QUASI)

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """Return the number of every person's record in the original, from 1 on."""
        if not self.table.drop:
            return np.arange(1, self.n + 1)
        there = []
        for batch in self.table.source.batches(list(self.table.drop)):
            there.append(np.logical_and.reduce([present(batch.column(name), name) for name in self.table.drop]))
        return np.flatnonzero(np.concatenate(there)) + 1

    # ------------------------------------------------------------------ what a person has

    def published(self, statement: Statement) -> NDArray[np.int64]:
        """Return everybody's value as a code of the published domain; -1 for values that the release does not list."""
        if statement.name not in self.codes:
            raise DataError(
                f"the policy does not publish {statement.name!r} with a list of its values, as the release does.",
                hint="Give the policy that the release was made with.",
            )
        column = self.table.columns[statement.name]
        return translate_codes(statement, column, self.codes[statement.name])

    def truth(self, statement: Statement, who: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """Return the codes of all or some people; all their values must be listed."""
        out = self.published(statement) if who is None else self.published(statement)[who]
        if (out < 0).any():
            raise DataError(
                f"{int((out < 0).sum())} records of the original have a value of {statement.name!r} that the release "
                "lacks.",
                hint=NOT_THIS_TABLE,
            )
        return out

    def secret(self, statement: Statement) -> NDArray[np.int64]:
        """Return the true values of a column that the policy protects."""
        column = self.table.columns.get(statement.name)
        if column is None or not column.role.needs_requirement:
            raise DataError(
                f"the policy does not protect column {statement.name!r}, as the release does.",
                hint="Give the policy that the release was made with.",
            )
        return self.truth(statement)

    def exact(self, name: str) -> NDArray:
        """Return a quasi-identifier as in the original, before binning and merging, as arbitrary numbers."""
        column = self.table.columns[name]
        if not column.is_open and not column.domain.edges and not column.domain.merged and name in self.codes:
            return self.codes[name]
        return self.texts(name)[1]

    def keys(self, names: Sequence[str]) -> list[NDArray]:
        """Return several quasi-identifiers unchanged."""
        return [self.exact(name) for name in names]

    def texts(self, name: str) -> Texts:
        """Return a column of the original unchanged."""
        if name not in self._read:
            self._read[name] = self._texts(name)
        return self._read[name]

    def _texts(self, name: str) -> Texts:
        source = self.table.source
        if name not in source.columns:
            hint = f"It has {list_columns(source.columns)}."
            raise QueryError(f"{source.name}: it has no column {name!r}, which should hold the true labels.", hint=hint)
        known, found = read_texts(source, [name])[name]
        if len(found) < self.n or (not self.table.drop and len(found) != self.n):
            raise DataError(
                f"{source.name}: it changed while it was read.", hint=("Run it again while nobody writes to the table.")
            )
        return known, found[self.rows - 1]

    def exact_texts(self, statements: Sequence[Statement]) -> pl.DataFrame:
        """Return everybody's values in exactly published columns, as text."""
        cells = {
            one.name: self.open[one.name] if one.name in self.open else CodeCells(one.d, self.truth(one))
            for one in statements
        }
        return texts(statements, cells)


def person_lines(case: Case, people: People) -> Lines:
    """Return the people of the original who are measured."""
    who = case.measured(people.n)
    return Lines("person", who[people.rows], who, holder_only=True)


def known_people(case: Case) -> People:
    """Return the original of a case, prepared once for all its attacks."""
    return case.remembered("people", lambda: _known(case))


def _known(case: Case) -> People:
    assert case.policy is not None
    release = case.release
    table = case.met() if case.met is not None else prepare(case.original, case.policy, stage=case.stage)
    if table.n != release.records + release.suppressed:
        raise DataError(
            (
                f"the original has {table.n} records, but the release has {release.records} and reports "
                f"{release.suppressed} suppressed."
            ),
            hint=NOT_THIS_TABLE,
        )
    shared = [one.name for one in release.statements if one.terms is None and one.name in table.columns]
    names = [name for name in shared if name not in case.policy.knowledge]
    reading = table.reading(names)
    codes: dict[str, list[NDArray]] = {name: [] for name in reading.domains}
    loose: dict[str, list[OpenCells]] = {name: [] for name in reading.open}
    with case.stage("Reading codes", table.n) as meter:
        for batch in table.engine.encoded(table.source, reading, meter=meter) if names else ():
            for name, found in codes.items():
                found.append(batch.codes[name])
            for name, cells in loose.items():
                cells.append(batch.open[name])
    return People(
        table,
        {name: np.concatenate(found) for name, found in codes.items()},
        {name: OpenCells.concat(cells) for name, cells in loose.items()},
    )


# ---------------------------------------------------------------------- rows that are recognised


def exact_statements(release: Published) -> list[Statement]:
    """Return the columns that a release publishes exactly."""
    return [one for one in release.statements if one.is_exact]


def exact_texts(release: Published, names: Sequence[str] | None = None) -> pl.DataFrame:
    """Return the exact columns of every published row as text."""
    chosen = [one for one in exact_statements(release) if names is None or one.name in names]
    return texts(chosen, release.cells([one.name for one in chosen]) if chosen else {})


def texts(statements: Sequence[Statement], cells: Mapping[str, Any]) -> pl.DataFrame:
    """Return exact cells as texts that are comparable between releases."""
    import polars as pl

    out = {}
    for one in statements:
        key = one.key(cells[one.name])
        out[one.name] = key if one.column.is_open else pl.Series(one.domain.values, dtype=pl.String).gather(key)
    return pl.DataFrame(out)


def unique_pairs(left: pl.DataFrame, right: pl.DataFrame) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs of rows that agree in all columns and are unique in both tables."""
    if not left.columns:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    n = left.height
    columns = [_numbered(left[name], right[name]) for name in left.columns]
    number = row_numbers(columns, [int(column.max(initial=0)) + 1 for column in columns], n + right.height)
    mine, theirs = number[:n], number[n:]
    size = int(number.max(initial=-1)) + 1
    alone = (np.bincount(mine, minlength=size) == 1) & (np.bincount(theirs, minlength=size) == 1)
    place = np.zeros(size, np.int64)
    place[theirs] = np.arange(len(theirs))
    found = np.flatnonzero(alone[mine])
    return found, place[mine[found]]


def _numbered(left: pl.Series, right: pl.Series) -> NDArray:
    """Number the cells of two columns together, so that equal cells have equal numbers."""
    import polars as pl

    both = pl.concat([left, right])
    if not (both.dtype.is_unsigned_integer() and both.null_count() == 0):
        both = (both.cast(pl.UInt8) if both.dtype == pl.Boolean else both).rank("dense").fill_null(0)
    return both.to_numpy()


def same_rows(first: Published, others: Sequence[Published]) -> tuple[NDArray[np.int64], list[NDArray[np.int64]]]:
    """Return the rows of the first release that are matched in all others, and their positions there."""
    rows = np.arange(first.records)
    places = []
    for release in others:
        theirs = {one.name for one in exact_statements(release)}
        names = [one.name for one in exact_statements(first) if one.name in theirs]
        mine, found = unique_pairs(exact_texts(first, names), exact_texts(release, names))
        at = np.full(first.records, -1, np.int64)
        at[mine] = found
        places.append(at)
        rows = rows[at[rows] >= 0]
    return rows, [at[rows] for at in places]
