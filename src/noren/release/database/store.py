"""Reading a release from its schema: the manifest, the cells in batches, and combinations counted by the server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from noren.cells import CellBatch, Cells, Statement
from noren.errors import ReleaseError
from noren.io.postgres import Address, Connection, PostgresSource, Refused, quoted, text
from noren.release.database.layout import CELLS, MANIFEST, RECORDS, key_table, lookup_name, side_name
from noren.release.manifest import Manifest
from noren.release.package import manifest_of
from noren.release.sides import sides

AGAIN = "Ask for the release again."
COUNTING = ("work_mem = '256MB'", "parallel_setup_cost = 0", "parallel_tuple_cost = 0")
"""So that combinations are counted in memory and by several processes of the server, however many there are."""


class DatabaseStore:
    """The cells of a release in a base. All reading is in one snapshot."""

    def __init__(self, address: Address, columns: Sequence[Statement]) -> None:
        self.address = address
        self.schema = quoted(address.schema or "")
        self.columns = tuple(columns)
        self._source = PostgresSource(replace(address, schema=None, table=f"{self.schema}.{quoted(CELLS)}"))
        self._lookups = {
            column.name: name
            for number, column in enumerate(columns, 1)
            if (name := lookup_name(column, number)) is not None
        }
        self._meant: dict[str, Cells] = {}

    def batches(self, columns: Sequence[Statement]) -> Iterator[CellBatch]:
        for batch in self._source.batches([column.name for column in columns]):
            yield self._cells(batch, columns)

    def counted(self, columns: Sequence[Statement]) -> tuple[CellBatch, NDArray[np.int64]]:
        """The different combinations of cells and how many rows have each, counted by the server."""
        import pyarrow as pa

        batches = list(self._source.read(self.counting(columns), COUNTING))
        table = pa.Table.from_batches(batches).combine_chunks()
        rows = table.column("rows\n").to_numpy()
        parts = table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
        return self._cells(parts[0], columns), rows.astype(np.int64)

    def counting(self, columns: Sequence[Statement]) -> str:
        """The query that counts combinations."""
        names = ", ".join(quoted(column.name) for column in columns)
        return f'SELECT {names}, count(*) AS "rows\n" FROM {self.schema}.{CELLS} GROUP BY {names}'

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
            out[column.name] = meant.take(ids.astype(np.int64))
        return out

    def _lookup(self, column: Statement) -> Cells:
        """What the numbers of a column mean, read once."""
        import pyarrow as pa

        if column.name not in self._meant:
            name = f"{self.schema}.{quoted(self._lookups[column.name])}"
            table = pa.Table.from_batches(list(self._source.read(f"SELECT id, value FROM {name} ORDER BY id")))
            if not np.array_equal(table.column("id").to_numpy(), np.arange(table.num_rows)):
                raise ReleaseError(f"the numbers of column {column.name!r} have gaps.", hint=AGAIN)
            self._meant[column.name] = column.from_arrow(table.column("value").combine_chunks())
        return self._meant[column.name]

    # ------------------------------------------------------------------ closed world

    @cached_property
    def described(self) -> Mapping[str, set[str]]:
        """The columns of every table that such a release has."""
        names = {column.name for column in self.columns}
        out = {CELLS: names, RECORDS: names, MANIFEST: {"format", "manifest"}}
        out |= {name: {"id", "value", "interval"} for name in self._lookups.values()}
        for side, sharing in sides(self.columns).items():
            out[side_name(side)] = {field["name"] for field in sharing[0].side_fields()}
            if sharing[0].side_key is not None:
                out[key_table(side)] = {"id"}
        return out

    def demand_closed(self) -> None:
        """Refuse a schema with a table or a column that the manifest does not describe."""
        with Connection(self.address) as base:
            found = base.rows(
                "SELECT c.relname::text, a.attname::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid "
                f"WHERE c.relnamespace = {text(self.schema)}::regnamespace AND c.relkind IN ('r', 'v', 'm', 'p', 'f') "
                "AND a.attnum > 0 AND NOT a.attisdropped"
            )
        strange = sorted({table for table, _ in found if table not in self.described})
        if strange:
            raise _refused(self.address, f"it holds the table {strange[0][:60]!r}")
        strange = sorted({column for table, column in found if column not in self.described[table]})
        if strange:
            raise _refused(self.address, f"it has the column {strange[0][:60]!r}")


def _refused(address: Address, why: str) -> ReleaseError:
    return ReleaseError(
        f"{address.name}: not as published: {why}, which its manifest does not describe.",
        hint="Do not use it; ask the holder for it again.",
    )


def read_database(place: str) -> tuple[Manifest, DatabaseStore, str]:
    """Manifest, cells and name of the release in a schema."""
    address = Address.parse(place)
    if not address.schema:
        hint = 'Name its schema: "postgresql://host/base?schema=patients_2026".'
        raise ReleaseError(f"{address.name}: no release is named.", hint=hint)
    schema = quoted(address.schema)
    with Connection(address) as base:
        try:
            found = base.rows(f"SELECT manifest::text FROM {schema}.{MANIFEST}")
        except Refused as refused:
            if refused.state in ("42P01", "3F000"):
                raise ReleaseError(f"{address.name}: no release here.", hint="Check the name of the schema.") from None
            raise
        if len(found) != 1:
            raise _refused(address, "its manifest is not one")
        manifest = manifest_of(address.name, json.loads(found[0][0]))
        columns = _with_sides(base, schema, manifest.columns, address)
    store = DatabaseStore(address, columns)
    if set(store._source.columns) != {column.name for column in columns}:
        raise _refused(address, "its cells have other columns")
    return manifest.model_copy(update={"columns": tuple(columns)}), store, address.name


def _with_sides(base: Connection, schema: str, columns: Sequence[Statement], address: Address) -> list[Statement]:
    import pyarrow as pa

    found: dict[str, Any] = {}
    for side, sharing in sides(columns).items():
        batches = list(base.batches(f"SELECT * FROM {schema}.{quoted(side_name(side))}"))
        table = pa.Table.from_batches(batches).combine_chunks()
        content = {name: table.column(name).combine_chunks() for name in table.column_names}
        try:
            found[side] = sharing[0].read_side(content)
        except (pa.ArrowException, KeyError, ValueError, TypeError):
            raise _refused(address, f"the table {side_name(side)!r} is not what a column needs") from None
    return [column if column.side is None else column.with_side(found[column.side]) for column in columns]
