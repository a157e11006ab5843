"""Reading a release from a base, without a server: tables held here stand for those of the base."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from noren.errors import ReleaseError
from noren.release.database.layout import Pair, pair_reading
from noren.release.database.store import ROWS, DatabaseStore, _pairs, _with_sides
from noren.sources.postgres import Address
from noren.statements import Statement
from tests.statements import exact_column, group_column, node_column, set_column

ADDRESS = Address("postgresql://h/b", "postgresql://h/b", schema="s")
COLUMNS: tuple[Statement, ...] = (
    exact_column("town", 3),
    set_column("ill", 4),
    node_column("age", 2),
    set_column("job", 3),
)
"""The second, the third and the fourth are kept as numbers."""


class Base:
    """Answers a query with the table that it names first."""

    def __init__(self, tables: Mapping[str, pa.Table], rows: int = 0) -> None:
        self.tables, self.count = tables, rows
        self.columns = [column.name for column in COLUMNS]

    def batches(self, query: str) -> Iterator[Any]:
        named = [(query.index(name), name) for name in self.tables if name in query]
        yield from self.tables[min(named)[1]].to_batches()

    def read(self, query: str, settings: Sequence[str] = ()) -> Iterator[Any]:
        return self.batches(query)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return [(self.count,)]

    @contextmanager
    def reader(self, settings: Sequence[str]) -> Iterator[Base]:
        yield self


def opened(
    monkeypatch: pytest.MonkeyPatch, tables: Mapping[str, pa.Table], rows: int = 0, pairs: Sequence[Pair] = ()
) -> DatabaseStore:
    monkeypatch.setattr("noren.release.database.store.PostgresSource", lambda address: Base(tables, rows))
    return DatabaseStore(ADDRESS, COLUMNS, pairs)


def meant(ids: Sequence[int], values: Any) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int32()), "value": values})


SETS = {
    "sets_2": meant([0, 1], pa.array([["0", "1"], ["2", "3"]])),
    "sets_4": meant([0, 1], pa.array([["0", "2"], ["1", "2"]])),
}


def counted(first: Sequence[int], second: Sequence[int], rows: Sequence[int]) -> pa.Table:
    return pa.table(
        {"ill": pa.array(first, pa.int32()), "job": pa.array(second, pa.int32()), ROWS: pa.array(rows, pa.int64())}
    )


def test_columns_that_were_counted_together_are_read_from_their_table(monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(monkeypatch, {}, pairs=[(2, 4), (2, 3)])
    town, ill, age, job = COLUMNS
    assert store.counting([job, ill]) == pair_reading('"s"', (2, 4), {4: "job", 2: "ill"}, ROWS)
    assert ".counts_2_4 GROUP BY first" in store.counting([ill])  # the first that has it
    assert ".counts_2_3 GROUP BY second" in store.counting([age])
    for others in ([town], [age, job], [ill, age, job], [town, ill]):
        assert "cells GROUP BY" in store.counting(others)


def test_counts_come_with_what_their_numbers_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = SETS | {"counts_2_4": counted([0, 1], [1, 0], [5, 2])}
    cells, rows = opened(monkeypatch, tables, 7, [(2, 4)]).count_combinations([COLUMNS[1], COLUMNS[3]])
    assert rows.tolist() == [5, 2]
    shown = {name: COLUMNS[place].to_arrow(cells[name]).to_pylist() for name, place in (("ill", 1), ("job", 3))}
    assert shown == {"ill": [["0", "1"], ["2", "3"]], "job": [["1", "2"], ["0", "2"]]}
    with pytest.raises(ReleaseError, match="its tables of counts do not belong to its rows"):
        opened(monkeypatch, tables, 8, [(2, 4)]).count_combinations([COLUMNS[1], COLUMNS[3]])


def test_rows_that_the_base_counts_itself_need_no_second_count(monkeypatch: pytest.MonkeyPatch) -> None:
    grouped = counted([1], [1], [3]).append_column("town", pa.array(["2"]))
    store = opened(monkeypatch, SETS | {"cells": grouped}, rows=99)
    cells, rows = store.count_combinations([COLUMNS[0], COLUMNS[1], COLUMNS[3]])
    assert rows.tolist() == [3]
    assert COLUMNS[0].to_arrow(cells["town"]).to_pylist() == ["2"]


def test_a_release_without_rows_has_no_combinations(monkeypatch: pytest.MonkeyPatch) -> None:
    none = counted([], [], [])
    held = {name: table.slice(0, 0) for name, table in SETS.items()}

    class Streamed(Base):
        """A base sends the schema with a batch of no rows."""

        def batches(self, query: str) -> Iterator[Any]:
            found = list(super().batches(query))
            (table,) = {name: table for name, table in self.tables.items() if name in query}.values()
            yield from found or [pa.RecordBatch.from_pylist([], schema=table.schema)]

    monkeypatch.setattr("noren.release.database.store.PostgresSource", lambda address: Streamed(held | {"cells": none}))
    cells, rows = DatabaseStore(ADDRESS, COLUMNS).count_combinations([COLUMNS[1], COLUMNS[3]])
    assert (len(cells["ill"]), len(cells["job"]), rows.tolist()) == (0, 0, [])


def test_numbers_with_a_gap_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    lists = pa.array([["0", "1"], ["2", "3"]])
    for ids in ([0, 2], [1, 2], [0, 0]):
        store = opened(monkeypatch, {"sets_2": meant(ids, lists)})
        with pytest.raises(ReleaseError, match="the numbers of column 'ill' have gaps"):
            store._lookup(COLUMNS[1])


def test_the_tables_that_such_a_release_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noren.release.database.store.PostgresSource", lambda address: Base({}))
    found = DatabaseStore(ADDRESS, [*COLUMNS, group_column("pay", 3)], [(2, 4)]).described_tables
    names = {"town", "ill", "age", "job", "pay"}
    numbers = {name: {"id", "value", "interval"} for name in ("sets_2", "nodes_3", "sets_4")}
    assert found == numbers | {
        "cells": names,
        "records": names,
        "manifest": {"format", "manifest"},
        "counts_2_4": {"first", "second", "rows"},
        "groups_1": {"group", "value", "count"},
        "groups_1_keys": {"id"},
    }


def test_pairs_are_those_of_columns_with_numbers() -> None:
    class There:
        def rows(self, query: str) -> list[tuple[str]]:
            return [("counts_3_4",), ("counts_2_4",), ("counts_1_2",), ("counts_of_mine",), ("counts_4_5",)]

    base: Any = There()
    assert _pairs(base, '"s"', COLUMNS) == [(3, 4), (2, 4)]  # in the order that the base gives, the shortest first


def test_a_column_gets_the_groups_that_its_table_lists() -> None:
    column = group_column("pay", 3)
    town = exact_column("town", 3)
    there = pa.table({name: np.asarray(cells) for name, cells in column.side_columns().items()})
    base: Any = Base({"groups_1": there})
    first, second = _with_sides(base, '"s"', [town, replace(column, held=None)], ADDRESS)
    assert first == town
    assert second.side_columns() == column.side_columns()
    base = Base({"groups_1": there.drop_columns("count")})
    with pytest.raises(ReleaseError, match="the table 'groups_1' does not fit its column"):
        _with_sides(base, '"s"', [town, column], ADDRESS)
