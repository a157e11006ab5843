"""Reading a release from its schema: the manifest, the cells in batches, and combinations counted by the server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.errors import ReleaseError
from noren.release.database.layout import (
    CELLS,
    FIELDS,
    MANIFEST,
    RECORDS,
    Pair,
    key_table,
    lookup_name,
    pair_comparison,
    pair_reading,
    side_name,
    table_name,
    view_query,
)
from noren.release.manifest import Manifest
from noren.release.package import manifest_of
from noren.release.store import sides
from noren.sources.postgres import Address, Connection, PostgresSource, Refused, quote_name, quote_text
from noren.statements import CellBatch, Cells, SetCells, Statement
from noren.statements.set_cells import look_up_sets

AGAIN = "Ask for the release again."
NO_VIEWS = ("42501", "25006")
"""SQLSTATE of a right that is missing, and of a server that only reads."""
ROWS = "rows\n"
"""The title of counts in an answer of the base; no column of a release has it."""
COUNTING = ("work_mem = '256MB'", "parallel_setup_cost = 0", "parallel_tuple_cost = 0")
"""So that combinations are counted in memory and by several processes of the server, however many there are."""


class DatabaseStore:
    """The cells of a release in a database. All reading is in one snapshot."""

    def __init__(self, address: Address, columns: Sequence[Statement], pairs: Sequence[Pair] = ()) -> None:
        self.address = address
        self.pairs = tuple(pairs)
        """Which columns, by their places, the base has counted together."""
        self.schema = quote_name(address.schema or "")
        self.columns = tuple(columns)
        self._source = PostgresSource(replace(address, schema=None, table=f"{self.schema}.{quote_name(CELLS)}"))
        self._lookups = {
            column.name: name
            for number, column in enumerate(columns, 1)
            if (name := lookup_name(column, number)) is not None
        }
        self._places = {column.name: number for number, column in enumerate(columns, 1)}
        self._meant: dict[str, Cells] = {}
        self._counted: int | None = None

    def batches(self, columns: Sequence[Statement]) -> Iterator[CellBatch]:
        for batch in self._source.batches([column.name for column in columns]):
            yield self._cells(batch, columns)

    def count_combinations(self, columns: Sequence[Statement]) -> tuple[CellBatch, NDArray[np.int64]]:
        """Count the distinct combinations of cells on the server."""
        import pyarrow as pa

        with self._source.reader(COUNTING) as reader:  # one for all: to connect costs more than to read a few lines
            for column in columns:
                if column.name in self._lookups:
                    self._lookup(column, reader)
            table = pa.Table.from_batches(list(reader.batches(self.counting(columns)))).combine_chunks()
            rows = table.column(ROWS).to_numpy().astype(np.int64)
            if self._find_pair(columns) is not None and int(rows.sum()) != self._rows(reader):
                raise _refusal(self.address, "its tables of counts do not belong to its rows", "")
        parts = table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
        return self._cells(parts[0], columns), rows

    def counting(self, columns: Sequence[Statement]) -> str:
        """Return the query that counts combinations, from stored counts if the database has them."""
        kept = self._find_pair(columns)
        if kept is not None:
            return pair_reading(self.schema, kept, {self._places[one.name]: one.name for one in columns}, ROWS)
        names = ", ".join(quote_name(column.name) for column in columns)
        return f"SELECT {names}, count(*) AS {quote_name(ROWS)} FROM {self.schema}.{CELLS} GROUP BY {names}"

    def _find_pair(self, columns: Sequence[Statement]) -> Pair | None:
        """Return the first stored pair of columns that contains all of these."""
        asked = {self._places[column.name] for column in columns}
        return next((pair for pair in self.pairs if asked and asked <= set(pair)), None)

    def _rows(self, reader: Connection) -> int:
        """Return the number of rows, counted once per snapshot."""
        if self._counted is None:
            self._counted = int(reader.rows(f"SELECT count(*) FROM {self.schema}.{CELLS}")[0][0])
        return self._counted

    def _cells(self, batch: Any, columns: Sequence[Statement]) -> dict[str, Cells]:
        out: dict[str, Cells] = {}
        for column in columns:
            found = batch.column(column.name)
            if column.name not in self._lookups:
                out[column.name] = column.from_arrow(found)
                continue
            meant, ids = self._lookup(column), found.to_numpy(zero_copy_only=False)
            if len(ids) and not (found.null_count == 0 and ids.min() >= 0 and ids.max() < len(meant)):
                raise ReleaseError(f"column {column.name!r} has a number without a meaning.", hint=AGAIN)
            out[column.name] = look_up_sets(meant, ids) if isinstance(meant, SetCells) else meant.take(ids)
        return out

    def _lookup(self, column: Statement, reader: Connection | None = None) -> Cells:
        """Return the meaning of the numbers of a column, read once."""
        import pyarrow as pa

        if column.name not in self._meant:
            asked = f"SELECT id, value FROM {self.schema}.{quote_name(self._lookups[column.name])} ORDER BY id"
            batches = self._source.read(asked) if reader is None else reader.batches(asked)
            table = pa.Table.from_batches(list(batches))
            if not np.array_equal(table.column("id").to_numpy(), np.arange(table.num_rows)):
                raise ReleaseError(f"the numbers of column {column.name!r} have gaps.", hint=AGAIN)
            self._meant[column.name] = column.from_arrow(table.column("value").combine_chunks())
        return self._meant[column.name]

    # ------------------------------------------------------------------ closed world

    @cached_property
    def described_tables(self) -> Mapping[str, set[str]]:
        """Return the columns of every table of such a release."""
        names = {column.name for column in self.columns}
        out = {CELLS: names, RECORDS: names, MANIFEST: {"format", "manifest"}}
        out |= {name: {"id", "value", "interval"} for name in self._lookups.values()}
        out |= {table_name(pair): set(FIELDS) for pair in self.pairs}
        for side, sharing in sides(self.columns).items():
            out[side_name(side)] = {field["name"] for field in sharing[0].side_fields()}
            if sharing[0].side_key is not None:
                out[key_table(side)] = {"id"}
        return out

    def demand_closed(self) -> None:
        """Refuse a schema with a table or column that the manifest does not describe, another view, row policies, or
        wrong counts."""
        with Connection(self.address) as base:
            self._demand_view(base)
            self._demand_plain(base)
            found = base.rows(
                "SELECT c.relname::text, a.attname::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid "
                f"WHERE c.relnamespace = {quote_text(self.schema)}::regnamespace "
                "AND c.relkind IN ('r', 'v', 'm', 'p', 'f') AND a.attnum > 0 AND NOT a.attisdropped"
            )
        strange = sorted({table for table, _ in found if table not in self.described_tables})
        if strange:
            raise _refusal(self.address, f"it holds the table {strange[0][:60]!r}")
        strange = sorted({column for table, column in found if column not in self.described_tables[table]})
        if strange:
            raise _refusal(self.address, f"it has the column {strange[0][:60]!r}")
        for pair in self.pairs:
            names = [self.columns[place - 1].name for place in pair]
            asked = pair_comparison(self.schema, CELLS, pair, names)
            if any(batch.num_rows for batch in self._source.read(asked, COUNTING)):
                raise _refusal(self.address, f"{table_name(pair)} does not match its rows", "")

    def _demand_plain(self, base: Connection) -> None:
        """Refuse rules, row policies, and inheritance between tables."""
        asked = base.rows(
            "SELECT c.relname::text FROM pg_class c WHERE "
            f"c.relnamespace = {quote_text(self.schema)}::regnamespace AND c.relname <> '{RECORDS}' "
            "AND c.relkind <> 'i' AND (c.relkind <> 'r' OR c.relrowsecurity OR c.relhasrules "
            "OR EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhparent = c.oid))"
        )
        if asked:
            raise _refusal(self.address, f"{asked[0][0][:60]!r} is not an ordinary table", "")

    def _demand_view(self, base: Connection) -> None:
        """Refuse a view that differs from the published one, by comparing the server's definitions."""
        full = quote_text(f"{self.schema}.{RECORDS}")
        try:
            base.run("BEGIN")
            base.run("SET LOCAL search_path = ''")
            base.run(f"CREATE TEMPORARY VIEW {RECORDS} AS {view_query(self.schema, self.columns)}")
            found = base.rows(
                f"SELECT relkind = 'v' AND pg_get_viewdef(oid) = pg_get_viewdef('pg_temp.{RECORDS}'::regclass) "
                f"FROM pg_class WHERE oid = to_regclass({full})"
            )
            base.run("ROLLBACK")
        except Refused as refused:
            if refused.state not in NO_VIEWS:
                raise
            message = (
                f"{self.address.name}: this user may not create temporary views, so {RECORDS!r} cannot be compared."
            )
            raise ReleaseError(message, hint="Verify as a user with the right TEMPORARY on the database.") from None
        if found != [(True,)]:
            raise _refusal(self.address, f"{RECORDS!r} is not the view of its cells", "")


def _refusal(address: Address, why: str, which: str = ", which its manifest does not describe") -> ReleaseError:
    return ReleaseError.distrust(f"{address.name}: not as published: {why}{which}.")


def _pairs(base: Connection, schema: str, columns: Sequence[Statement]) -> list[Pair]:
    """Return the stored pairs of columns, the smallest first. Older releases have none."""
    there = base.rows(
        "SELECT relname::text FROM pg_class WHERE relkind = 'r' AND relname LIKE 'counts%' "
        f"AND relnamespace = {quote_text(schema)}::regnamespace ORDER BY reltuples, relname"
    )
    numbers = [number for number, column in enumerate(columns, 1) if lookup_name(column, number) is not None]
    possible = {table_name(pair): pair for pair in combinations(numbers, 2)}
    return [possible[name] for (name,) in there if name in possible]


def read_database(place: str) -> tuple[Manifest, DatabaseStore, str]:
    """Return manifest, cells and name of the release in a schema."""
    address = Address.parse(place)
    if not address.schema:
        hint = 'Add its schema to the address: "postgresql://host/base?schema=patients_2026".'
        raise ReleaseError(f"{address.name}: the address has no schema of a release.", hint=hint)
    schema = quote_name(address.schema)
    with Connection(address) as base:
        try:
            found = base.rows(f"SELECT manifest::text FROM {schema}.{MANIFEST}")
        except Refused as refused:
            if refused.state in ("42P01", "3F000"):
                raise ReleaseError(
                    f"{address.name}: this is not a release.", hint="Check the name of the schema."
                ) from None
            raise
        if len(found) != 1:
            raise _refusal(address, "its manifest is not a manifest")
        manifest = manifest_of(address.name, json.loads(found[0][0]))
        columns = _with_sides(base, schema, manifest.columns, address)
        pairs = _pairs(base, schema, columns)
    store = DatabaseStore(address, columns, pairs)
    if set(store._source.columns) != {column.name for column in columns}:
        raise _refusal(address, "its cells have other columns")
    return manifest.model_copy(update={"columns": tuple(columns)}), store, address.name


def _with_sides(base: Connection, schema: str, columns: Sequence[Statement], address: Address) -> list[Statement]:
    import pyarrow as pa

    found: dict[str, Any] = {}
    for side, sharing in sides(columns).items():
        batches = list(base.batches(f"SELECT * FROM {schema}.{quote_name(side_name(side))}"))
        table = pa.Table.from_batches(batches).combine_chunks()
        content = {name: table.column(name).combine_chunks() for name in table.column_names}
        try:
            found[side] = sharing[0].read_side(content)
        except (pa.ArrowException, KeyError, ValueError, TypeError):
            raise _refusal(address, f"the table {side_name(side)!r} does not fit its column") from None
    return [column if column.side is None else column.with_side(found[column.side]) for column in columns]
