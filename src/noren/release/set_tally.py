"""Collects the sets of a release while its cells are made; if they are few, each is stored once and cells are
numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from noren.errors import NorenError
from noren.statements import CellBatch, Cells, SetStatement, Statement, batch_length
from noren.statements.set import NUMBERS, SET_KEY
from noren.statements.set_cells import SetOrder, code_dtype, look_up_sets, numberable

LEAST_ROWS = 10_000
"""Rows from which a second file is worth its trouble to a reader."""
ROWS_PER_SET = 8
"""Rows that share a set on average, at least, where sets are kept once."""


class SetTally:
    """The sets of every column that could be numbered, and which of them occur."""

    def __init__(self, columns: Sequence[Statement]) -> None:
        self._statements = tuple(columns)
        self._orders: dict[str, SetOrder] = {}
        names = {column.name.casefold() for column in columns}
        for column in columns:
            name = column.name.casefold()
            fits = isinstance(column, SetStatement) and name != SET_KEY and name + NUMBERS not in names
            if fits and numberable(column.d, column.values_per_record):
                self._orders[column.name] = SetOrder.of(column.d, column.values_per_record)
        self._seen = {name: np.zeros(order.nowhere + 1, bool) for name, order in self._orders.items()}
        self._places: dict[str, NDArray] = {}
        self._rows = 0

    @classmethod
    def of(cls, columns: Sequence[Statement], batches: Iterable[CellBatch]) -> SetTally:
        """Collect the sets of a finished table."""
        out = cls(columns)
        for batch in batches:
            out.number_sets(batch)
        return out

    @classmethod
    def expecting(cls, columns: Sequence[Statement], rows: int) -> SetTally:
        """Assume that a table of so many rows shows all sets of columns with few sets, for cells that are made
        elsewhere. `narrow_to` removes those that do not occur."""
        out = cls(columns)
        out._rows = rows
        for name, order in list(out._orders.items()):
            if rows < max(LEAST_ROWS, ROWS_PER_SET * order.nowhere):
                del out._orders[name], out._seen[name]
            else:
                out._seen[name][:-1] = True
        return out

    def narrow_to(self, seen: Mapping[str, NDArray[np.bool_]]) -> SetTally:
        """Return the tally of the sets that occur."""
        out = type(self).expecting(self._statements, self._rows)
        for name, found in seen.items():
            out._seen[name][:-1] = found
        return out

    def number_sets(self, batch: CellBatch) -> dict[str, Cells]:
        """Return the same cells with sets as numbers among all sets, which are recorded."""
        out = dict(batch)
        for name, order in self._orders.items():
            ids = order.numbers(batch[name])  # type: ignore[arg-type]
            self._seen[name][ids] = True
            out[name] = look_up_sets(order.universe, ids)
        self._rows += batch_length(batch)
        return out

    def columns(self) -> tuple[Statement, ...]:
        """Return the columns as written: with a table of the sets that occur, if these are few."""
        out: list[Statement] = []
        for column in self._statements:
            if not isinstance(column, SetStatement):
                out.append(column)
                continue
            seen = self._seen.get(column.name)
            if seen is not None and seen[-1]:
                raise NorenError(f"column {column.name!r} holds a set that its design does not draw.")
            few = seen is not None and self._rows >= max(LEAST_ROWS, ROWS_PER_SET * int(seen.sum()))
            if not few:
                out.append(column.with_table(None))
                continue
            assert seen is not None
            order = self._orders[column.name]
            kind = code_dtype(int(seen.sum()))
            self._places[column.name] = np.maximum(np.cumsum(seen) - 1, 0).astype(kind)
            out.append(column.with_table(order.universe.take(np.flatnonzero(seen))))
        self._tables = {column.name: column.held for column in out if isinstance(column, SetStatement)}
        return tuple(out)

    def renumber_sets(self, batch: CellBatch) -> dict[str, Cells]:
        """Return the cells of `columns()`, with numbers among the sets that occur."""
        out = dict(batch)
        for name, place in self._places.items():
            table = self._tables[name]
            assert table is not None
            ids = self._orders[name].numbers(batch[name])  # type: ignore[arg-type]
            if int(ids.max(initial=0)) >= self._orders[name].nowhere:
                raise NorenError(f"column {name!r} holds a set that its design does not draw.")
            out[name] = look_up_sets(table, place[ids])
        return out
