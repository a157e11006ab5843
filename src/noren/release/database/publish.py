"""Writes a release into its own schema, in one transaction; only named roles can read it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from noren.errors import ReleaseError
from noren.progress import Meter, silent
from noren.release.database.layout import (
    CELLS,
    MANIFEST,
    RECORDS,
    Lookup,
    PairTally,
    comments,
    demand_names,
    key_table,
    lookup_name,
    node_ranges,
    pair_constraints,
    pair_definition,
    plain,
    side_name,
    sql_type,
    table_name,
    view_query,
)
from noren.release.manifest import FORMAT
from noren.release.package import manifest_block
from noren.release.release import Release
from noren.release.store import sides
from noren.sources.postgres import Address, Connection, Refused, quote_name, quote_text
from noren.statements import CellBatch, Cells, Statement

TAKEN = "42P06"
"""SQLSTATE of a schema that exists."""
NO_ROLE = "42704"


def publish(release: Release, place: str, *, grant: Sequence[str] = (), meter: Meter = silent) -> str:
    """Write a release into the schema that an address names ("postgresql://host/base?schema=patients_2026").

    The schema must not exist. All or nothing: whatever stops it, nothing is left. The roles in `grant` may read it,
    and nobody else but its owner. Returns the address without user and password.
    """
    address = Address.parse(place)
    if not address.schema:
        raise ReleaseError(
            f"{address.name}: which schema?", hint='For example "postgresql://localhost/base?schema=patients_2026".'
        )
    demand_names(release.statements)
    columns = tuple(column.written_out() for column in release.statements)
    lookups = [_lookup(release, column, number) for number, column in enumerate(columns, 1)]
    sizes = {number: len(lookup.content) for number, lookup in enumerate(lookups, 1) if lookup is not None}
    with Connection(address) as base:
        base.run("BEGIN")
        _write(base, release, address, list(zip(columns, lookups, strict=True)), PairTally(sizes, release.rows), meter)
        _close(base, quote_name(address.schema), grant)
        base.run("COMMIT")
    return address.name


def _lookup(release: Release, statement: Statement, number: int) -> Lookup | None:
    """Return the distinct cells of a column in a deterministic order, if a table of them is smaller."""
    name = lookup_name(statement, number)
    if name is None:
        return None
    found: Cells | None = None
    for batch in release.batches([statement.name]):
        cells = batch[statement.name]
        found = (cells if found is None else type(cells).concat([found, cells])).distinct()[0]
    if found is None:
        return None
    content = plain(statement.to_arrow(found))
    ranges = node_ranges(statement.nodes)
    if ranges is not None:
        codes = statement.key(found)
        ranges = ranges[0], [ranges[1][code] for code in codes]
    return Lookup(name, found, content, ranges)


def _write(
    base: Connection,
    release: Release,
    address: Address,
    columns: Sequence[tuple[Statement, Lookup | None]],
    tally: PairTally,
    meter: Meter,
) -> None:
    schema = quote_name(address.schema or "")
    try:
        base.run(f"CREATE SCHEMA {schema}")
    except Refused as refused:
        if refused.state == TAKEN:
            hint = "A release never overwrites: choose another name, or drop the schema first."
            raise ReleaseError(f"{address.name} exists already.", hint=hint) from None
        raise
    statements = [column for column, _ in columns]
    for _, lookup in columns:
        if lookup is not None:
            _fill_lookup(base, lookup, address)
    for side, sharing in sides(statements).items():
        _fill_side(base, side, sharing[0], address)
    types = ", ".join(f"{quote_name(column.name)} {_type(release, column, lookup)}" for column, lookup in columns)
    base.run(f"CREATE TABLE {schema}.{CELLS} ({types})")
    rows = base.ingest(CELLS, _reader(release, columns, tally, meter), address.schema or "")
    if rows not in (-1, release.rows):
        raise ReleaseError(f"{rows} rows were written instead of {release.rows}.")
    keys = [key for column, lookup in columns if (key := _foreign_key(schema, column, lookup)) is not None]
    if keys:  # checked at once: row by row it takes as long as all the rest
        base.run(f"ALTER TABLE {schema}.{CELLS} {', '.join(f'ADD {key}' for key in keys)}")
    _fill_counts(base, tally, columns, address)
    base.run(f"ANALYZE {schema}.{CELLS}")  # so that the server knows how few different cells it will count
    base.run(f"CREATE VIEW {schema}.{RECORDS} AS {view_query(schema, statements)}")
    manifest = release.manifest.model_copy(update={"columns": tuple(statements)})
    block = json.dumps(manifest_block(manifest), ensure_ascii=False)
    base.run(f"CREATE TABLE {schema}.{MANIFEST} (format int NOT NULL, manifest json NOT NULL)")
    base.run(f"INSERT INTO {schema}.{MANIFEST} VALUES ({FORMAT}, {quote_text(block)}::json)")
    for comment in comments(schema, statements, [lookup for _, lookup in columns], list(tally.held)):
        base.run(comment)


def _fill_lookup(base: Connection, lookup: Lookup, address: Address) -> None:
    import pyarrow as pa

    schema = quote_name(address.schema or "")
    for statement in lookup.definition(schema):
        base.run(statement)
    ids = pa.array(np.arange(len(lookup.content), dtype=np.int32))
    table = pa.table({"id": ids, "value": lookup.content})
    if lookup.ranges is None:
        base.ingest(lookup.name, table, address.schema or "")
        return
    kind, texts = lookup.ranges
    full = f"{schema}.{quote_name(lookup.name)}"
    base.run(f"ALTER TABLE {full} ADD COLUMN as_text text, ALTER COLUMN interval DROP NOT NULL")
    base.ingest(lookup.name, table.append_column("as_text", pa.array(texts)), address.schema or "")
    base.run(f"UPDATE {full} SET interval = as_text::{kind}")
    base.run(f"ALTER TABLE {full} DROP COLUMN as_text, ALTER COLUMN interval SET NOT NULL")


def _fill_side(base: Connection, side: str, statement: Statement, address: Address) -> None:
    import pyarrow as pa

    schema = quote_name(address.schema or "")
    content = pa.table({name: plain(column) for name, column in statement.side_columns().items()})
    types = [f"{quote_name(field.name)} {sql_type(field.type)}" for field in content.schema]
    key = statement.side_key
    if key is not None:
        keys = content.column(key).combine_chunks().unique().sort()
        base.run(f"CREATE TABLE {schema}.{key_table(side)} (id {sql_type(keys.type)} PRIMARY KEY)")
        base.ingest(key_table(side), pa.table({"id": keys}), address.schema or "")
        types.append(f"FOREIGN KEY ({quote_name(key)}) REFERENCES {schema}.{key_table(side)} (id)")
    base.run(f"CREATE TABLE {schema}.{quote_name(side_name(side))} ({', '.join(types)})")
    base.ingest(side_name(side), content, address.schema or "")


def _fill_counts(
    base: Connection, tally: PairTally, columns: Sequence[tuple[Statement, Lookup | None]], address: Address
) -> None:
    schema = quote_name(address.schema or "")
    names = {number: lookup.name for number, (_, lookup) in enumerate(columns, 1) if lookup is not None}
    for pair, content in tally.tables():
        base.run(pair_definition(schema, pair))
        base.ingest(table_name(pair), content, address.schema or "")
        base.run(pair_constraints(schema, pair, [names[place] for place in pair]))


def _type(release: Release, column: Statement, lookup: Lookup | None) -> str:
    if lookup is not None:
        return "int NOT NULL"
    first = next(iter(release.batches([column.name])))
    return sql_type(plain(column.to_arrow(first[column.name].take(slice(0, 1)))).type)


def _foreign_key(schema: str, column: Statement, lookup: Lookup | None) -> str | None:
    if lookup is not None:
        return f"FOREIGN KEY ({quote_name(column.name)}) REFERENCES {schema}.{quote_name(lookup.name)} (id)"
    if column.side is not None and column.side_key is not None:
        return f"FOREIGN KEY ({quote_name(column.name)}) REFERENCES {schema}.{key_table(column.side)} (id)"
    return None


def _reader(
    release: Release, columns: Sequence[tuple[Statement, Lookup | None]], tally: PairTally, meter: Meter
) -> Any:
    """Return the rows as an Arrow stream."""
    import pyarrow as pa

    made = (_rows(batch, columns, tally) for batch in release.batches())
    first = next(made)

    def every() -> Iterator[Any]:
        for batch in chain([first], made):
            meter(batch.num_rows)
            yield batch

    return pa.RecordBatchReader.from_batches(first.schema, every())


def _rows(batch: CellBatch, columns: Sequence[tuple[Statement, Lookup | None]], tally: PairTally) -> Any:
    import pyarrow as pa

    arrays, ids = {}, {}
    for number, (column, lookup) in enumerate(columns, 1):
        cells = batch[column.name]
        if lookup is None:
            arrays[column.name] = plain(column.to_arrow(cells))
            continue
        together = type(cells).concat([lookup.cells, cells])
        numbers = together.distinct()[1]  # what is in the lookup comes first, each once
        places = np.full(len(lookup.cells), -1, np.int32)
        places[numbers[: len(lookup.cells)]] = np.arange(len(lookup.cells), dtype=np.int32)
        ids[number] = places[numbers[len(lookup.cells) :]]
        arrays[column.name] = pa.array(ids[number])
    tally.add(ids)
    return pa.RecordBatch.from_pydict(arrays)


def _close(base: Connection, schema: str, grant: Sequence[str]) -> None:
    """Revoke default privileges, and grant the named roles the right to read."""
    given = base.rows(
        "SELECT DISTINCT c.relname::text, coalesce(r.rolname::text, 'public') FROM pg_class c "
        "CROSS JOIN aclexplode(c.relacl) a LEFT JOIN pg_roles r ON r.oid = a.grantee "
        f"WHERE c.relnamespace = {quote_text(schema)}::regnamespace AND a.grantee <> c.relowner"
    )
    for table, role in given:
        whom = "PUBLIC" if role == "public" else quote_name(role)
        base.run(f"REVOKE ALL ON {schema}.{quote_name(table)} FROM {whom}")
    given = base.rows(
        "SELECT DISTINCT coalesce(r.rolname::text, 'public') FROM pg_namespace n CROSS JOIN aclexplode(n.nspacl) a "
        f"LEFT JOIN pg_roles r ON r.oid = a.grantee WHERE n.oid = {quote_text(schema)}::regnamespace "
        "AND a.grantee <> n.nspowner"
    )
    for (role,) in given:
        base.run(f"REVOKE ALL ON SCHEMA {schema} FROM {'PUBLIC' if role == 'public' else quote_name(role)}")
    for role in grant:
        try:
            base.run(f"GRANT USAGE ON SCHEMA {schema} TO {quote_name(role)}")
            base.run(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {quote_name(role)}")
        except Refused as refused:
            if refused.state == NO_ROLE:
                raise ReleaseError(f"there is no role {role!r}.", hint="Create it first, or use another.") from None
            raise
