"""A published table: columns with their statements, cells in batches, and the number of people.

A draft that is being verified, a release, a table that another tool made: whatever is checked or attacked is this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from math import prod

import numpy as np

from noren.errors import QueryError, ReleaseError, list_columns
from noren.release.store import Store
from noren.statements import CellBatch, Cells, Design, Statement, batch_length, concat


class Published:
    """A published table as a reader sees it."""

    def __init__(
        self, columns: Sequence[Statement], store: Store, records: int, *, suppressed: int = 0, title: str = "release"
    ) -> None:
        self.statements = tuple(columns)
        self.store = store
        self.records = records
        """People in it."""
        self.suppressed = suppressed
        """People who were left out to protect the others."""
        self.title = title

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.records:,} records: {', '.join(self.columns)}>"

    # ------------------------------------------------------------------ columns

    @cached_property
    def by_name(self) -> Mapping[str, Statement]:
        return {column.name: column for column in self.statements}

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.by_name)

    def column(self, name: str) -> Statement:
        """Return the statement of one column."""
        if name not in self.by_name:
            raise QueryError(f"there is no column {name!r}.", hint=f"It has {list_columns(self.columns)}.")
        return self.by_name[name]

    @property
    def designs(self) -> dict[str, Design]:
        """Return the design of every drawn column."""
        return {column.name: column.design for column in self.statements if column.design is not None}

    def over(self, columns: Mapping[str, Statement]) -> Published:
        """Return the same cells with other statements about some columns."""
        changed = [columns.get(column.name, column) for column in self.statements]
        return Published(changed, self.store, self.records, suppressed=self.suppressed, title=self.title)

    # ------------------------------------------------------------------ cells

    @cached_property
    def rows_per_record(self) -> int:
        return prod(column.rows_per_record for column in self.statements)

    def repeats(self, name: str) -> int:
        """Return in how many rows of a person the same cell of a column occurs."""
        return self.rows_per_record // self.by_name[name].rows_per_record

    @property
    def rows(self) -> int:
        """Return the number of published rows: one per person, or one per combination of members of a person's sets."""
        return self.records * self.rows_per_record

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[CellBatch]:
        """Yield the cells of some columns, batch by batch."""
        names = self.columns if columns is None else columns
        return self.store.batches([self.by_name[name] for name in names])

    def gather_cells(self, columns: Sequence[str]) -> dict[str, Cells]:
        """Return the cells of some columns, all rows in the cheapest order, for counting."""
        counted = getattr(self.store, "count_combinations", None)
        if counted is None or not columns:
            return self.cells(columns)
        cells, rows = counted([self.by_name[name] for name in columns])
        if int(rows.sum()) != self.rows:
            raise self.count_error(int(rows.sum()))
        every = np.repeat(np.arange(len(rows)), rows)
        return {name: found.take(every) for name, found in cells.items()}

    def cells(self, columns: Sequence[str]) -> dict[str, Cells]:
        """Return the cells of some columns, all rows."""
        batches = list(self.batches(columns))
        cells = concat(batches) if batches else {}
        found = batch_length(cells) if batches else 0
        if found != self.rows or not batches:
            raise self.count_error(found)
        return cells

    def count_error(self, found: int) -> ReleaseError:
        """Return the error for data with another number of rows than the manifest says."""
        message = f"the data hold {found} rows, the manifest says {self.rows}."
        return ReleaseError.distrust(message)
